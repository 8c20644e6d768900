"""A bulk run carried on a little: what a page does again and again, and nobody waits for.

All it goes by is in the run's row, so that the steps may come from anywhere, at any time.
"""

from __future__ import annotations

import time
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.bulk_canary import leave, look
from django_leasequeue.core.bulk_chunk import Chunk, take_chunk
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

    At its rate, which the row keeps, however often and by how many this is called. A run that is
    over, or was stopped, is left alone. Raises BulkRun.DoesNotExist, and database errors.
    """
    until, waited = time.monotonic() + seconds, 0
    row = BulkRun.objects.using(connection.alias).get(pk=run_id)
    if row.state not in (State.CANARY, State.RUNNING):
        return
    plan = Plan.of(row)
    window = plan.options.chunk
    while True:
        chunk = take_chunk(connection, plan, plan.options.chunk, window, patient=waited < _PATIENCE)
        if not _goes_on(connection, plan, chunk) or time.monotonic() + chunk.pause >= until:
            return
        few = len(chunk.changed) + len(chunk.left_out) < plan.options.chunk // 2
        window = min(_MOST_WINDOW, max(CHUNK, window * 2)) if few else plan.options.chunk
        waited = waited + 1 if chunk.waits else 0
        if pause := max(chunk.pause, _PAUSE if waited else 0.0):
            time.sleep(pause)


def _goes_on(connection: BaseDatabaseWrapper, plan: Plan, chunk: Chunk) -> bool:
    """Tell whether there is more to do, now that a chunk was dealt with."""
    if chunk.state is not State.CANARY or len(chunk.canary) < plan.options.canary:
        return chunk.state in (State.CANARY, State.RUNNING)
    verdict = look(connection, chunk.canary)
    if verdict.good:
        leave(connection, plan.id, State.RUNNING, "")
    elif verdict.good is False or _waited(connection, plan.id) > plan.options.canary_wait:
        leave(connection, plan.id, State.STOPPED, verdict.why)
    return verdict.good is True


def _waited(connection: BaseDatabaseWrapper, run_id: int) -> float:
    """Return for how many seconds those that went first have been under way."""
    runs = BulkRun.objects.using(connection.alias).filter(pk=run_id)
    since: datetime = runs.values_list("updated_at", flat=True).get()
    return (read_now(connection) - since).total_seconds()
