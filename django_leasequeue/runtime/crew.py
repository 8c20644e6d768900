"""The crew: where a worker's handlers run, in children or in this very process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Ack, Cause
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Capacity", "Crew", "CrewFailed", "enforce"]


class CrewFailed(LeaseQueueError):
    """No child can be started: whatever stands in the log before this is why."""


class Capacity(NamedTuple):
    """How many jobs a crew can start now, and how many more it can have waiting."""

    free: int
    ahead: int


class Crew(Protocol):
    """One interface for children and for solo. Called by the worker's loop, except `beat`."""

    @property
    def charges(self) -> Sequence[Charge]:
        """What it has been given and has not ended."""

    @property
    def size(self) -> int:
        """How many child processes it has."""

    def capacity(self) -> Capacity:
        """Return what it can take now; starts what is missing."""

    def occupied(self, seconds: float) -> bool:
        """Tell whether everyone has work waiting for more than so many seconds."""

    def give(self, charges: Sequence[Charge]) -> None:
        """Have these run, in this order."""

    def collect(self) -> list[Ended]:
        """Return what has ended since the last call."""

    def interrupt(self, charge: Charge, cause: Cause) -> None:
        """Tell a handler to end."""

    def kill(self, charge: Charge) -> None:
        """End a handler that did not end when told."""

    def acknowledge(self, acks: Sequence[Ack]) -> None:
        """Let those who listen know of ends that are in the database now."""

    def outgrown(self) -> bool:
        """Tell whether the worker itself uses more memory than it may: it has to end."""

    def stop(self) -> None:
        """Give back what has not started, and let handlers know that the worker drains."""

    def wait(self, wakeup: Wakeup, seconds: float, also: int | None = None) -> bool:
        """Return after `seconds`, when woken, or when there may be something to collect.

        Or when the descriptor `also` is readable; tells whether it was for that alone.
        """

    def beat(self) -> None:
        """Called by the renewer's thread twice a second, whatever the loop does."""

    def close(self, *, hard: bool) -> None:
        """End all processes, at once if `hard`."""


def enforce(crew: Crew, limits: Limits, now: float, *, abort: bool) -> None:
    """Interrupt the handlers that have to end, and kill those that did not."""
    for charge in crew.charges:
        cause = limits.cause(charge, now, abort=abort)
        if charge.cause is None and cause is not None:
            charge.cause, charge.told_at = cause, now
            crew.interrupt(charge, cause)
        elif limits.kill_due(charge, now):
            crew.kill(charge)
