"""Prune: delete finished jobs that are old enough, a batch and a commit at a time.

Workers never delete. Pruning is an operator's command, under an account of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connections

from django_leasequeue.conf import get_conf
from django_leasequeue.core.archive import open_archive
from django_leasequeue.core.old_jobs import Target, moment_ago
from django_leasequeue.core.prune_run import Pruned, PruneRun
from django_leasequeue.core.transaction import in_transaction
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.retention import PRUNABLE, Retention, age_in_seconds, retention_of
from django_leasequeue.statuses import Status

__all__ = ["BATCH", "MOST_IN_A_BATCH", "Pruned", "prune"]

#: Larger batches hold up the COMMIT of a claim beside them: docs/operations.md has figures.
BATCH = 100
MOST_IN_A_BATCH = 5_000
_LONGEST_PAUSE = 3_600
#: Dead letters are evidence: they go only when somebody names them.
_UNASKED = (Status.DONE, Status.CANCELLED)
Names = str | Iterable[str] | None


def prune(
    *,
    status: Names = None,
    job_type: Names = None,
    queue: str | None = None,
    older_than: float | timedelta | None = None,
    batch: int = BATCH,
    pause: float | None = None,
    limit: int | None = None,
    archive: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    progress: Callable[[int], object] | None = None,
    using: str | None = None,
) -> Pruned:
    """Delete finished jobs with their attempts and effects, and return how many rows went.

    With `older_than` (seconds or a timedelta, by the database's clock) jobs that finished
    before that: of the given `status`, else done and cancelled ones, of `job_type` and `queue` if
    these are given, `limit` jobs at most. Without it as LEASEQUEUE["RETENTION"] says; if nothing is
    selected, rows of workers and bulk runs as well. A ready, reserved or parked job cannot be
    selected; a dead one waits for its `failed` hook.

    A transaction takes at most `batch` jobs, children first, and `pause` seconds lie between two.
    Without it, 24 times as long as the one before took, from 0.05 to 2 seconds: the workers have
    the server for most of the time, and a run is as much slower.
    With `archive` every job is in that file, on the disk, before it is gone; what the file holds
    are payloads. `progress` is called with the number of jobs of each batch; `dry_run` counts and
    deletes nothing. What is locked just now, and what is requeued meanwhile, stays. It is a
    separate process with an account of its own, as in seed S1.

    Raises LeaseQueueError, with nothing deleted, for input that is wrong, an archive that cannot
    be opened, and inside a transaction; OSError when the disk refuses a batch, which then stays.
    """
    connection = connections[using or get_conf().DATABASE]
    wish = _checked(status, job_type, queue, older_than, limit)
    work = PruneRun(
        connection,
        batch=_whole("batch", batch, MOST_IN_A_BATCH),
        pause=None if pause is None else _pause(pause),
        dry_run=dry_run,
        left=wish.limit,
        progress=progress,
    )
    if in_transaction(connection):
        raise LeaseQueueError("prune() commits batch by batch: call it outside of transactions")
    opened = nullcontext() if archive is None or dry_run else open_archive(archive)
    with opened as work.archive:
        now = moment_ago(connection, 0)
        for target in _targets(wish, now):
            work.jobs(target)
        for name, age in wish.beside.items():
            work.beside(name, _before(now, age))
    return work.done


@dataclass(frozen=True, slots=True)
class _Wish:
    """What is to be pruned, checked."""

    statuses: tuple[Status, ...]
    types: tuple[str, ...] | None
    queue: str | None
    limit: int | None
    older_than: float | None
    retention: Retention
    narrowed: bool

    @property
    def beside(self) -> dict[str, float]:
        """Which rows beside the jobs are to go, and how old they have to be."""
        if self.narrowed:
            return {}
        ages = {"workers": self.retention.workers, "bulk_runs": self.retention.bulk_runs}
        return {name: age for name, age in ages.items() if age is not None}


def _checked(
    status: Names, job_type: Names, queue: str | None, older_than: Any, limit: int | None
) -> _Wish:
    retention = retention_of(get_conf().RETENTION)
    types = None if job_type is None else tuple(_listed(job_type))
    named = None if status is None else tuple(dict.fromkeys(map(_prunable, _listed(status))))
    if older_than is not None:
        try:
            older_than = age_in_seconds(older_than)
        except ValueError as error:
            raise LeaseQueueError(f"older_than: {error}") from None
    elif named and (lacking := [one for one in named if not retention.names(one)]):
        raise LeaseQueueError(
            f"LEASEQUEUE['RETENTION'] says nothing about {lacking[0].value} jobs: "
            "say older_than, 0 for all of them"
        )
    most = None if limit is None else _whole("limit", limit, 1 << 62)
    kept = [one for one in PRUNABLE if retention.names(one)]
    statuses = named or (kept if older_than is None else _UNASKED)
    given = (named, types, queue, most, older_than)
    narrowed = any(one is not None for one in given)
    return _Wish(tuple(statuses), types, queue, most, older_than, retention, narrowed)


def _listed(names: str | Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    if not listed:
        raise LeaseQueueError("an empty list selects nothing: leave status or job_type out for all")
    return listed


def _prunable(name: str) -> Status:
    known = ", ".join(status.value for status in PRUNABLE)
    if name not in tuple(PRUNABLE):
        raise LeaseQueueError(f"Jobs that are {name!r} are never pruned, only these: {known}")
    return Status(name)


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise LeaseQueueError(f"{name} is a whole number from 1 to {most}, not {value!r}")
    return value


def _pause(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _LONGEST_PAUSE:
        raise LeaseQueueError(f"pause is 0 to {_LONGEST_PAUSE} seconds, not {value!r}")
    return float(value)


def _targets(wish: _Wish, now: datetime) -> Iterator[Target]:
    """Yield what is to go: of each status the types that have ages of their own, and the rest."""
    for status in wish.statuses:
        if wish.older_than is not None:
            yield Target(status, _before(now, wish.older_than), wish.queue, wish.types)
            continue
        own = wish.retention.types_with_ages(status)
        for job_type, age in own.items():
            if age is not None and job_type in (wish.types or own):
                yield Target(status, _before(now, age), wish.queue, (job_type,))
        age = wish.retention.jobs.get(status.value)
        types = wish.types and tuple(name for name in wish.types if name not in own)
        if age is not None and types != ():
            yield Target(status, _before(now, age), wish.queue, types, tuple(own))


def _before(now: datetime, age: float) -> datetime:
    return now - timedelta(seconds=age)
