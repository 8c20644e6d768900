"""Holds: the leases a worker has, and until when it may trust each."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.runtime.clock import ticks

__all__ = ["Hold", "Holds"]

#: The part of a lease that is not trusted: the drift of two clocks, and the way of an answer.
_MARGIN = 0.05


@dataclass(slots=True)
class Hold:
    """A lease in this worker's hands; `trusted_until` and `renew_at` are in ticks."""

    lease: Lease
    seconds: float
    trusted_until: float = 0.0
    renew_at: float = 0.0
    lost: bool = False

    def extend(self, since: float) -> None:
        """Trust the lease anew: it runs for `seconds` from `since`, when it was asked for."""
        self.trusted_until = since + self.seconds * (1 - _MARGIN)
        self.renew_at = since + self.seconds / 3

    @property
    def trusted(self) -> bool:
        """Tell whether this worker may still act under the lease."""
        return not self.lost and ticks() < self.trusted_until


@dataclass(slots=True)
class Holds:
    """The holds of one worker, shared by its main thread and its renewer."""

    _holds: dict[Lease, Hold] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, job: Claimed, since: float) -> Hold:
        """Start to hold a job that was claimed by a call begun at `since` ticks."""
        hold = Hold(job.lease, job.seconds)
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
            return [hold for hold in self._holds.values() if hold.renew_at <= now]

    def __len__(self) -> int:
        with self._lock:
            return len(self._holds)
