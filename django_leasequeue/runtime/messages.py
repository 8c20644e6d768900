"""What control and a child tell each other: plain data, nothing of the project.

The pipe's reader builds only classes of this package, so that no message makes control import or
run project code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.exceptions import JobCancelled, JobInterrupted, JobTimeout, LeaseLost
from django_leasequeue.outcomes import Outcome
from django_leasequeue.runtime.executor import LastEnd
from django_leasequeue.runtime.holds import Told
from django_leasequeue.statuses import Status

__all__ = [
    "INTERRUPTS",
    "Ack",
    "Acks",
    "Assigned",
    "Assignment",
    "Cause",
    "Holding",
    "Interrupt",
    "Progress",
    "Quit",
    "Ready",
    "Recall",
    "Report",
    "Session",
    "Started",
    "Stopping",
    "Trust",
]


class Cause(StrEnum):
    """Why control ends an attempt."""

    TIMEOUT = "the attempt ran longer than its time limit"
    CANCELLED = "the job was cancelled"
    LOST = "the lease is lost"
    ABORT = "the worker was told to abort"


INTERRUPTS: dict[Cause, type[JobInterrupted]] = {
    Cause.TIMEOUT: JobTimeout,
    Cause.CANCELLED: JobCancelled,
    Cause.LOST: LeaseLost,
    Cause.ABORT: JobInterrupted,
}


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job to run, or with `last` a dead job to bury.

    `limit` is seconds, `trusted_until` the lease's, in ticks.
    """

    job: Claimed
    trusted_until: float
    limit: float | None = None
    last: LastEnd | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Assignment, (self.job, self.trusted_until, self.limit, self.last)


class Assigned(NamedTuple):
    """To a child: run these, in this order.

    After `start_by`, in ticks, no handler may begin: by then control counts the jobs as not
    started and gives them back.
    """

    assignments: tuple[Assignment, ...]
    start_by: float


class Trust(NamedTuple):
    """Until when, in ticks, leases may be trusted now.

    To a child: those that control has renewed. From a child: those that handlers have prolonged.
    """

    until: tuple[tuple[Lease, float], ...]


class Holding(NamedTuple):
    """From a child: until when, in ticks, a handler's transaction has this job; 0 when it ended."""

    lease: Lease
    until: float


class Interrupt(NamedTuple):
    """To a child: end this attempt."""

    lease: Lease
    cause: Cause


class Ack(NamedTuple):
    """An attempt's end is in the database, and the job is `status`; None: its lease was lost."""

    lease: Lease
    status: Status | None


class Acks(NamedTuple):
    """To a child: what became of attempts that it has reported."""

    acks: tuple[Ack, ...]


class Recall(NamedTuple):
    """To a child: give back what has not started."""


class Stopping(NamedTuple):
    """To a child: the worker is draining; handlers may ask for it."""


class Quit(NamedTuple):
    """To a child: end when nothing is left to run."""


class Ready(NamedTuple):
    """From a child: it can run handlers now."""


class Session(NamedTuple):
    """From a child: one of its threads has this session with the queue's database now."""

    thread: int
    session_id: int


class Progress(NamedTuple):
    """From a child: how far a handler says it is."""

    lease: Lease
    told: Told


class Started(NamedTuple):
    """From a child: the handler begins now."""

    lease: Lease


class Report(NamedTuple):
    """From a child: how an attempt ended, after how many seconds, and its memory in bytes.

    `listened`: somebody there waits for an Ack.
    """

    lease: Lease
    outcome: Outcome
    seconds: float = 0.0
    memory: int = 0
    listened: bool = False
