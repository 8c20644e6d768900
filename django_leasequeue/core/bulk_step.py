"""A bulk run carried on a little: what a page does again and again, and nobody waits for.

All it goes by is in the run's row, so that the steps may come from anywhere, at any time.
"""

from __future__ import annotations

import time

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.bulk_canary import leave, look
from django_leasequeue.core.bulk_chunk import take_chunk
from django_leasequeue.core.bulk_plan import CHUNK, Plan, State
from django_leasequeue.core.clock import read_now
from django_leasequeue.models import BulkRun

__all__ = ["step"]

_PAUSE = 0.05
_MOST_WINDOW = 20 * CHUNK
#: Passes over a job that somebody has locked, before it is left out.
_PATIENCE = 5


def step(connection: BaseDatabaseWrapper, run_id: int, *, seconds: float) -> None:
    """Do what a run has to do now, for about so many seconds; no longer than it has to do.

    At its rate by the database's clock, however often this is called. A run that is over, or was
    stopped, is left alone. Raises BulkRun.DoesNotExist, and database errors.
    """
    until, window, waited = time.monotonic() + seconds, CHUNK, 0
    while True:
        row = BulkRun.objects.using(connection.alias).get(pk=run_id)
        limit = _allowed(connection, row)
        if not limit:
            return
        chunk = take_chunk(connection, Plan.of(row), limit, window, patient=waited < _PATIENCE)
        few = len(chunk.changed) + len(chunk.left_out) < limit // 2
        window = min(_MOST_WINDOW, window * 2) if few else CHUNK
        waited = waited + 1 if chunk.waits else 0
        if time.monotonic() >= until:
            return
        if waited:
            time.sleep(_PAUSE)


def _allowed(connection: BaseDatabaseWrapper, row: BulkRun) -> int:
    """Return how many jobs may be changed at this moment."""
    plan = Plan.of(row)
    now = read_now(connection)
    since = (now - row.updated_at).total_seconds()
    if row.state == State.CANARY and len(row.canary) >= plan.options.canary:
        if not _passed(connection, plan, row, waited=since):
            return 0
    elif row.state not in (State.CANARY, State.RUNNING):
        return 0
    rate = plan.options.rate
    if rate is None or not row.changed:
        return CHUNK if rate is None else max(1, min(CHUNK, int(rate)))
    # What a pause would have allowed is not made up for.
    return min(CHUNK, max(1, int(rate)), int(rate * since))


def _passed(connection: BaseDatabaseWrapper, plan: Plan, row: BulkRun, *, waited: float) -> bool:
    """Tell whether the others follow those that went first, and write it down."""
    verdict = look(connection, row.canary)
    if verdict.good:
        leave(connection, plan.id, State.RUNNING, "")
    elif verdict.good is False or waited > plan.options.canary_wait:
        leave(connection, plan.id, State.STOPPED, verdict.why)
    return verdict.good is True
