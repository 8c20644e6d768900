"""Limits: when a running attempt is interrupted, and when its process is killed.

First the interrupt, and `kill_after` seconds later the kill: never later than the lease can be
trusted, so that the next worker never meets a handler that still runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from django_leasequeue.runtime.charges import Charge
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.messages import Cause

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The rules; `kill_after` is seconds, of which a sixth of the lease is used at most."""

    kill_after: float

    def cause(self, charge: Charge, now: float, *, abort: bool) -> Cause | None:
        """Return why the attempt has to end now, None while it may go on."""
        hold = charge.hold
        if hold.completed:
            return Cause.TIMEOUT if charge.overdue(now) else Cause.ABORT if abort else None
        if hold.cancelled:
            return Cause.CANCELLED
        if hold.lost or now >= hold.until - self._patience(hold):
            return Cause.LOST
        if charge.overdue(now):
            return Cause.TIMEOUT
        return Cause.ABORT if abort else None

    def kill_due(self, charge: Charge, now: float) -> bool:
        """Tell whether an attempt that was told to end has had its time."""
        if charge.cause is None:
            return False
        due = charge.told_at + self._patience(charge.hold)
        hold = charge.hold
        # What has not started never does without a lease; the process may run another job.
        if not (hold.lost or hold.cancelled or hold.completed or charge.started_at is None):
            due = min(due, hold.until)
        return now >= due

    def _patience(self, hold: Hold) -> float:
        return min(self.kill_after, hold.seconds / 6)
