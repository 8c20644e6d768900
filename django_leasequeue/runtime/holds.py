"""Holds: the leases a worker has, and until when it may trust each."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.presence import CurrentJob
from django_leasequeue.runtime.clock import ticks

__all__ = ["Hold", "Holds", "Told"]

#: The part of a lease that is not trusted: the drift of two clocks, and the way of an answer.
_MARGIN = 0.05
#: The part of a lease that one wait for the database (a quarter) and a kill (a sixth) may take.
_ENDING = 5 / 12
#: How long word of a renewal may lie unread in a process that has just been woken.
_WORD_SECONDS = 0.2


class Told(NamedTuple):
    """How far a handler says it is: a fraction from 0 to 1, None when it cannot tell, and a text.

    Two of them that look the same are still two calls.
    """

    fraction: float | None
    text: str

    def __repr__(self) -> str:
        return f"<Told {self.fraction}>"  # no text


@dataclass(slots=True)
class Hold:
    """A lease in this worker's hands; `trusted_until`, `held_until`, `renew_at` are in ticks.

    `held_until` is further than `trusted_until` while a transaction of the handler's has locked
    the row and prolonged the lease: that is seen, and counts, at its commit only.

    `lost` is a lease that somebody else has ended, `cancelled` says that an operator did, and
    `completed` that the handler has completed the job itself: no lease is needed any more. `told`
    is the newest progress of its handler, `shown` the one that was passed on.
    """

    lease: Lease
    seconds: float
    trusted_until: float = 0.0
    renew_at: float = 0.0
    held_until: float = 0.0
    job_type: str = ""
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    lost: bool = False
    cancelled: bool = False
    completed: bool = False
    told: Told | None = None
    shown: Told | None = None

    def extend(self, since: float) -> None:
        """Trust the lease anew: it runs for `seconds` from `since`, when it was asked for."""
        self.trusted_until = since + self.seconds * (1 - _MARGIN)
        self.renew_at = since + self.seconds / 3

    def prolong(self, since: float) -> None:
        """Trust the lease as the handler's own transaction, begun at `since`, has prolonged it.

        Its row is locked meanwhile: nobody can renew the lease, and nobody can take the job.
        """
        self.held_until = since + self.seconds * (1 - _MARGIN)

    def let_go(self, *, committed: bool) -> None:
        """The handler's transaction has ended: the lease is prolonged, or it never was."""
        if committed:
            self.trusted_until = max(self.trusted_until, self.held_until)
        self.held_until = 0.0

    @property
    def until(self) -> float:
        """Until when, in ticks, nobody else can have the job."""
        return max(self.trusted_until, self.held_until)

    @property
    def trusted(self) -> bool:
        """Tell whether this worker may still act under the lease."""
        return not self.lost and ticks() < self.until

    @property
    def ending(self) -> bool:
        """Tell whether the trust ends within the longest wait for the database, and a kill's."""
        return 0 < self.until - ticks() < self.seconds * _ENDING

    def tell(self, told: Told) -> None:
        """Leave the newest progress of the handler, from any thread."""
        self.told = told

    def regained(self) -> bool:
        """Tell whether word of a renewal comes now: a process that stood still may not have it."""
        until = ticks() + _WORD_SECONDS
        while not (self.trusted or self.lost) and ticks() < until:
            time.sleep(0.01)
        return self.trusted


@dataclass(slots=True)
class Holds:
    """The holds of one worker, shared by its main thread and its renewer."""

    _holds: dict[Lease, Hold] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, job: Claimed, since: float) -> Hold:
        """Start to hold a job that was claimed by a call begun at `since` ticks."""
        hold = Hold(job.lease, job.seconds, job_type=job.job_type)
        hold.extend(since)
        with self._lock:
            self._holds[job.lease] = hold
        return hold

    def drop(self, lease: Lease) -> None:
        """Stop holding: the lease is settled, or left to run out."""
        with self._lock:
            self._holds.pop(lease, None)

    def due(self, now: float) -> list[Hold]:
        """Return the holds whose renewal is due at `now` ticks."""
        with self._lock:
            return [hold for hold in self._held() if hold.renew_at <= now]

    def all(self) -> list[Hold]:
        """Return the holds whose leases are worth renewing."""
        with self._lock:
            return self._held()

    def _held(self) -> list[Hold]:
        holds = self._holds.values()
        return [hold for hold in holds if not (hold.lost or hold.cancelled or hold.completed)]

    def shown(self) -> tuple[CurrentJob, ...]:
        """Return what the worker holds, for operators."""
        with self._lock:
            return tuple(
                CurrentJob(hold.lease.job_id, hold.job_type, hold.since)
                for hold in self._holds.values()
            )

    def __len__(self) -> int:
        with self._lock:
            return len(self._holds)
