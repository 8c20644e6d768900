"""What `leasequeue status` shows, as a value: read in a bounded number of statements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db import connections

from django_leasequeue.cli.output import moment
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.gauges import CAP, QueueGauges, read_gauges
from django_leasequeue.models import Queue, Worker

__all__ = ["Overview", "age", "as_json", "count", "needs", "read_overview"]

_MOST_SECONDS = 60.0
_MOST_WORKERS = 100
_MOST_PAUSES = 1000
#: A worker that runs was seen within seconds.
_LATE_SECONDS = 60.0
_DAY = 24 * 3600.0


class Pause(NamedTuple):
    """Who put a queue on hold, why and since when."""

    since: datetime
    by: str
    reason: str

    def described(self) -> str:
        """Return it in a few words."""
        by = f" by {self.by}" if self.by else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"{moment(self.since)}{by}{reason}"


@dataclass(frozen=True)
class Overview:
    """One look at a database's queues; counts end at `CAP`."""

    database: str
    now: datetime
    queues: Sequence[QueueGauges]
    complete: bool
    paused: Mapping[str, Pause]
    workers: Sequence[Worker]
    more_workers: bool
    pending_burials: int
    expired_leases: int

    @cached_property
    def by_name(self) -> dict[str, QueueGauges]:
        """The queues by their names."""
        return {one.queue: one for one in self.queues}


def read_overview(alias: str, most_queues: int) -> Overview:
    """Look at the queues of a database; raises its errors."""
    gauges = read_gauges(connections[alias], seconds=_MOST_SECONDS, most=most_queues)
    held = Queue.objects.using(alias).filter(paused_at__isnull=False).order_by("name")
    columns = ("name", "paused_at", "paused_by", "pause_reason")
    paused = {row[0]: Pause(*row[1:]) for row in held.values_list(*columns)[:_MOST_PAUSES]}
    now, workers = _workers(alias)
    known = {one.queue for one in gauges.queues}
    idle = [
        QueueGauges(name, 0, 0, 0, 0, 0, 0.0, paused=True) for name in paused if name not in known
    ]
    return Overview(
        database=alias,
        now=now,
        queues=sorted([*gauges.queues, *(idle if gauges.complete else ())]),
        complete=gauges.complete,
        paused=paused,
        workers=workers[:_MOST_WORKERS],
        more_workers=len(workers) > _MOST_WORKERS,
        pending_burials=gauges.pending_burials,
        expired_leases=gauges.expired_leases,
    )


def _workers(alias: str) -> tuple[datetime, list[Worker]]:
    """Return the time there, and the workers of the last day that have not stopped."""
    now = read_now(connections[alias])
    running = Worker.objects.using(alias).filter(
        stopped_at=None, seen_at__gt=now - timedelta(seconds=_DAY)
    )
    return now, list(running.order_by("-seen_at", "name")[: _MOST_WORKERS + 1])


def count(number: int) -> str:
    """Return a capped count as it is shown."""
    return f"{number}+" if number >= CAP else str(number)


def age(seconds: float) -> str:
    """Return a time span in its largest unit."""
    for size, unit in ((_DAY, "d"), (3600.0, "h"), (60.0, "m")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(seconds, 0.0):.0f}s"


def needs(found: Overview) -> list[str]:
    """Return what needs a human, a sentence each, without names from the table."""
    dead = _total(one.dead for one in found.queues)
    parked = _total(one.parked for one in found.queues)
    due = any(one.ready and not one.paused for one in found.queues)
    seen = [
        (found.now - worker.seen_at).total_seconds() < _LATE_SECONDS for worker in found.workers
    ]
    sentences = {
        f"{dead} dead letters: look at them, then requeue or cancel them": dead,
        f"{parked} parked jobs: no worker here knows their type": parked,
        f"{len(found.paused)} paused queues: resume them when their reason is gone": found.paused,
        "due jobs, and no worker was seen within a minute": due and not any(seen),
        f"{found.expired_leases} leases ran out and were not recovered: is a worker running?": (
            found.expired_leases and not any(seen)
        ),
    }
    return [sentence for sentence, holds in sentences.items() if holds]


def _total(numbers: Iterable[int]) -> str:
    """Return the sum of capped counts as it is shown, "" for none."""
    all_of_them = list(numbers)
    more = "+" if any(number >= CAP for number in all_of_them) else ""
    return f"{sum(all_of_them)}{more}" if any(all_of_them) else ""


def as_json(found: Overview) -> dict[str, Any]:
    """Return all of it for programs; a count at `count_limit` means so many or more."""
    return {
        "database": found.database,
        "time": found.now,
        "count_limit": CAP,
        "queues": [_queue_json(found, one) for one in found.queues],
        "more_queues": not found.complete,
        "workers": [_worker_json(found, worker) for worker in found.workers],
        "more_workers": found.more_workers,
        "pending_burials": found.pending_burials,
        "expired_leases": found.expired_leases,
        "needs": needs(found),
    }


def _queue_json(found: Overview, one: QueueGauges) -> dict[str, Any]:
    pause = found.paused.get(one.queue)
    return {
        "name": one.queue,
        "ready": one.ready,
        "oldest_ready_seconds": one.oldest_ready if one.ready else None,
        "scheduled": one.scheduled,
        "reserved": one.reserved,
        "parked": one.parked,
        "dead": one.dead,
        "paused": pause and pause._asdict(),
    }


def _worker_json(found: Overview, worker: Worker) -> dict[str, Any]:
    return {
        "name": worker.name,
        "host": worker.host,
        "pid": worker.pid,
        "version": worker.version,
        "seen_seconds_ago": max(0.0, (found.now - worker.seen_at).total_seconds()),
        "started": worker.started_at,
        "queues": worker.queues,
        "children": worker.children,
        "current_jobs": worker.current_jobs,
    }
