"""Solo: handlers run in the worker's own process, in the thread that makes its turns.

For debuggers, tests and systems without fork. A handler that no interrupt ends cannot be killed
here: its lease is given up, so that another worker takes the job and the fence keeps this one out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence

from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Capacity, Crew, enforce
from django_leasequeue.runtime.limits import Limits
from django_leasequeue.runtime.messages import Ack, Cause
from django_leasequeue.runtime.pace import Pace
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.slots import UNSTARTED, Slot
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Solo"]

#: Handlers run one after the other for so long before their ends are settled together.
_TOGETHER_SECONDS = 0.03
_MOST_AHEAD = 30


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
        self._running: Charge | None = None
        self._waiting: deque[Charge] = deque()
        self._ended: list[Ended] = []
        self._pace = Pace()
        self._paces: defaultdict[str, Pace] = defaultdict(Pace)

    @property
    def charges(self) -> Sequence[Charge]:
        running = self._running
        return [*([] if running is None else [running]), *self._waiting]

    def capacity(self) -> Capacity:
        if self._running is not None or self._waiting or self._ended:
            return Capacity(0, 0)
        return Capacity(1, self._pace.within(_TOGETHER_SECONDS, _MOST_AHEAD))

    def occupied(self, seconds: float) -> bool:
        return False  # this thread is the only one

    def give(self, charges: Sequence[Charge]) -> None:
        self._waiting += charges
        self._work()

    def _work(self) -> None:
        """Run what waits, short jobs one after the other, any other one alone.

        What ended before it would wait for its end to be settled, and what waits behind it would
        be kept from other workers: that is given back, and it runs at the next call.
        """
        until = ticks() + _TOGETHER_SECONDS
        while self._waiting:
            mean = self._paces[self._waiting[0].job.job_type].mean
            short = 0 < mean < _TOGETHER_SECONDS
            if self._ended and not (short and ticks() + mean < until):
                return
            if not short and len(self._waiting) > 1:
                self._give_back(after=1)
                return
            self._run(self._waiting.popleft())

    def _give_back(self, *, after: int) -> None:
        while len(self._waiting) > after:
            self._ended.append(Ended(self._waiting.pop(), UNSTARTED, 0.0))

    def _run(self, charge: Charge) -> None:
        def begin() -> bool:
            # One that was lost, or cancelled, while it waited goes back, too.
            if self._shutdown.stopping or charge.cause is not None or not charge.hold.trusted:
                return False
            charge.start()
            return True

        self._running = charge
        try:
            report = self._slot.run(charge.assignment, charge.hold, begin)
        finally:
            self._running = None
        self._memory = report.memory
        end = Ended(charge, report.outcome, report.seconds)
        self._ended.append(end)
        self._pace.learn(end)
        self._paces[charge.job.job_type].learn(end)

    def collect(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def interrupt(self, charge: Charge, cause: Cause) -> None:
        if charge is self._running:  # what waits does not begin any more
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
        self._give_back(after=0)  # handlers ask the worker itself

    def wait(self, wakeup: Wakeup, seconds: float, also: int | None = None) -> bool:
        if self._waiting and not self._ended:
            self._work()
            return False
        return wakeup.wait(seconds, also)

    def beat(self) -> None:
        if self._running is not None and self._shutdown.unheard():
            self._slot.executor.interrupts.wake()
        enforce(self, self._limits, ticks(), abort=self._shutdown.aborting())

    def close(self, *, hard: bool) -> None:
        """There is no process to end."""
