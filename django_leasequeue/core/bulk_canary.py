"""The jobs of a bulk run that go first: how they ended decides whether the others follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, Job
from django_leasequeue.statuses import FINAL, Status

__all__ = ["Verdict", "leave", "look", "reopen"]

_NAMED = 5


class Verdict(NamedTuple):
    """`good` is None while some have not ended; `why` says what is known."""

    good: bool | None
    why: str


def look(connection: BaseDatabaseWrapper, ids: Sequence[int]) -> Verdict:
    """Return how the jobs ended: good when all are done, bad once one is dead, cancelled or gone.

    A job that was taken out of the table counts as bad: nobody can tell how it ended.
    """
    rows = Job.objects.using(connection.alias).filter(pk__in=ids)
    found: dict[int, str] = dict(rows.values_list("pk", "status"))
    now = {job_id: found.get(job_id, "gone") for job_id in ids}
    bad = [job_id for job_id, status in now.items() if status in _BAD]
    if bad:
        named = ", ".join(f"{job_id} ({now[job_id]})" for job_id in bad[:_NAMED])
        return Verdict(good=False, why=f"{len(bad)} of {len(ids)} that went first: job {named}")
    counts = Counter(now.values())
    if counts[Status.DONE] == len(ids):
        return Verdict(good=True, why="")
    left = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return Verdict(good=None, why=f"of those that went first: {left}")


def leave(connection: BaseDatabaseWrapper, run_id: int, state: str, note: str) -> None:
    """End a run's wait for those that went first: it goes on, or stops and says why."""
    runs = BulkRun.objects.using(connection.alias).filter(pk=run_id, state="canary")
    runs.update(state=state, note=note[:1000], updated_at=UtcNow())


def reopen(connection: BaseDatabaseWrapper, run_id: int) -> bool:
    """Let a run that stopped look at those that went first again; False: it had not stopped."""
    runs = BulkRun.objects.using(connection.alias).filter(pk=run_id, state="stopped")
    return runs.update(state="canary", note="", updated_at=UtcNow()) == 1


_BAD = {*(status.value for status in FINAL - {Status.DONE}), "gone"}
