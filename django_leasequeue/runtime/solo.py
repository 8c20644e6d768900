"""Solo: handlers run in the worker's own process, in the thread that makes its turns.

For debuggers, tests and systems without fork. A handler that no interrupt ends cannot be killed
here: its lease is given up, so that another worker takes the job and the fence keeps this one out.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Capacity, Crew, enforce
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Ack, Cause
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.slots import Slot
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Solo"]


class Solo(Crew):
    """A crew of one slot, in this process."""

    size = 0

    def __init__(
        self,
        slot: Slot,
        limits: Limits,
        shutdown: Shutdown,
        max_bytes: int,
    ) -> None:
        """`max_bytes` of resident memory are enough, 0 for no limit."""
        self._slot = slot
        self._limits = limits
        self._shutdown = shutdown
        self._max_bytes = max_bytes
        self._memory = 0
        self._charges: tuple[Charge, ...] = ()
        self._ended: list[Ended] = []

    @property
    def charges(self) -> Sequence[Charge]:
        return self._charges

    def capacity(self) -> Capacity:
        return Capacity(0 if self._charges or self._ended else 1, 0)

    def give(self, charges: Sequence[Charge]) -> None:
        for charge in charges:
            self._run(charge)

    def _run(self, charge: Charge) -> None:
        def begin() -> bool:
            if self._shutdown.stopping:
                return False
            charge.start()
            return True

        self._charges = (charge,)
        try:
            report = self._slot.run(charge.assignment, charge.hold, begin)
        finally:
            self._charges = ()
        self._memory = report.memory
        self._ended.append(Ended(charge, report.outcome, report.seconds))

    def collect(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def interrupt(self, charge: Charge, cause: Cause) -> None:
        self._slot.interrupt(charge.assignment, cause)

    def kill(self, charge: Charge) -> None:
        charge.hold.lost = True
        charge.told_at = ticks()
        if charge.cause in (Cause.TIMEOUT, Cause.ABORT):  # nothing else keeps it from going on
            self.interrupt(charge, charge.cause)

    def acknowledge(self, acks: Sequence[Ack]) -> None:
        for ack in acks:
            self._slot.acknowledge(ack)

    def outgrown(self) -> bool:
        return bool(self._max_bytes) and self._memory > self._max_bytes

    def stop(self) -> None:
        """Nothing waits here, and handlers ask the worker itself."""

    def wait(self, wakeup: Wakeup, seconds: float) -> None:
        wakeup.wait(seconds)

    def beat(self) -> None:
        if self._charges and self._shutdown.unheard():
            self._slot.executor.interrupts.wake()
        enforce(self, self._limits, ticks(), abort=self._shutdown.aborting())

    def close(self, *, hard: bool) -> None:
        """There is no process to end."""
