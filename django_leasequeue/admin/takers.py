"""The workers that are there, and which queues they take jobs from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from django_leasequeue.core.lanes import ALL_QUEUES
from django_leasequeue.models import Worker

__all__ = ["Takers", "is_late", "read_present", "seconds_since"]

#: Rows that are read: a page shows fewer, but has to know which queues they take.
_MOST = 1000
_DAY = timedelta(days=1)
#: A worker that runs was seen within seconds.
_LATE_SECONDS = 60.0


def read_present(alias: str, now: datetime) -> Sequence[Worker]:
    """Return the workers of the last day that have not stopped, those seen last first.

    `now` is the database's time. One statement; raises the database's errors.
    """
    present = Worker.objects.using(alias).filter(stopped_at=None, seen_at__gt=now - _DAY)
    return list(present.order_by("-seen_at", "name")[:_MOST])


def seconds_since(moment: datetime, now: datetime) -> float:
    """Return how long ago a moment was, which is in UTC if it has no zone."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (now - moment).total_seconds()


def is_late(worker: Worker, now: datetime) -> bool:
    """Tell whether a worker was not seen for so long that it may be gone."""
    return seconds_since(worker.seen_at, now) >= _LATE_SECONDS


@dataclass(frozen=True)
class Takers:
    """What is taken by the workers that were seen within a minute and were not told to drain."""

    queues: frozenset[str]
    #: How many were seen within a minute, those that drain among them.
    seen: int

    @classmethod
    def of(cls, workers: Iterable[Worker], now: datetime) -> Self:
        """Return what these workers take at `now`."""
        seen = [worker for worker in workers if not is_late(worker, now)]
        taking = [worker.queues for worker in seen if worker.drain_requested_at is None]
        # Plain SQL can have put in any JSON.
        names = [str(name) for names in taking if isinstance(names, list) for name in names]
        return cls(frozenset(names), len(seen))

    @property
    def all(self) -> bool:
        """Tell whether some worker takes from every queue there is."""
        return ALL_QUEUES in self.queues

    def take(self, queue: str) -> bool:
        """Tell whether some worker takes from this queue."""
        return self.all or queue in self.queues
