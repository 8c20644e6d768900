"""What a bulk run is to do and how, as values: checked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_search import Bounds
from django_leasequeue.core.changes import REQUEUED
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun
from django_leasequeue.statuses import Status, sources_of

__all__ = ["CHUNK", "SOURCES", "Options", "Plan", "Reason", "State"]

#: Jobs of one transaction.
CHUNK = 200
_MIN_RATE = 0.001
_MOST_SECONDS = 30 * 86400
SOURCES = {"requeue": REQUEUED, "cancel": sources_of(Status.CANCELLED)}


class State(StrEnum):
    """What a bulk run is; the last two are final."""

    CANARY = "canary"
    RUNNING = "running"
    STOPPED = "stopped"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class Reason(StrEnum):
    """Why a job was left out."""

    KEY_HELD = "key_held"
    LOCKED = "locked"
    OTHER_STATUS = "other_status"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Options:
    """How a run goes about it; seconds, and jobs a second.

    `most` is the number of jobs that it changes at most.
    """

    rate: float | None = None
    canary: int = 0
    canary_wait: float = 300.0
    spread: float = 0.0
    most: int | None = None

    @property
    def chunk(self) -> int:
        """How many jobs one transaction changes at most."""
        return CHUNK if self.rate is None else max(1, min(CHUNK, int(self.rate)))

    def check(self) -> None:
        """Raise LeaseQueueError, saying which and why, for an option that makes no sense."""
        if self.rate is not None and not _MIN_RATE <= self.rate < inf:
            raise LeaseQueueError(f"rate is {self.rate}; it is jobs a second, from {_MIN_RATE} on")
        if not 0 <= self.canary <= CHUNK:
            raise LeaseQueueError(f"canary is {self.canary}; it is 0 to {CHUNK} jobs")
        if self.most is not None and self.most < 1:
            raise LeaseQueueError(f"most is {self.most}; it is a number of jobs, from 1 on")
        for name in ("canary_wait", "spread"):
            if not 0 <= getattr(self, name) <= _MOST_SECONDS:
                raise LeaseQueueError(f"{name} is seconds, from 0 to {_MOST_SECONDS} (30 days)")


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a run's row never changes."""

    id: int
    operation: str
    wanted: JobFilter
    options: Options = field(repr=False)
    bounds: Bounds

    @classmethod
    def of(cls, row: BulkRun) -> Plan:
        """Return the plan of a run."""
        wanted = JobFilter.from_json(row.filter)
        bounds = Bounds(row.upper_id, row.started_at)
        return cls(row.pk, row.operation, wanted, Options(**row.options), bounds)

    @property
    def sources(self) -> Sequence[Status]:
        """The statuses whose jobs it changes."""
        return [status for status in SOURCES[self.operation] if status in self.wanted.statuses]

    @property
    def needs_keys(self) -> bool:
        """Whether a job must win back its key."""
        return self.operation == "requeue"
