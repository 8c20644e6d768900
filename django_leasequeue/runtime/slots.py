"""A slot: where handlers run one after the other, in one thread of a child or of a solo worker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from django_leasequeue.core.lease import Lease
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.aftermath import Ran
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.memory import resident_bytes
from django_leasequeue.runtime.messages import INTERRUPTS, Ack, Assignment, Cause, Report
from django_leasequeue.signals import jobs_claimed

__all__ = ["UNSTARTED", "Slot"]

UNSTARTED = Outcome(End.RELEASED, reason="Released before processing", started=False)


class Slot:
    """Runs assignments in the thread that calls `run`, with the executor's interrupts."""

    def __init__(
        self,
        executor: Executor,
        *,
        sender: type[Any],
        unacknowledged: dict[Lease, Ran] | None = None,
        weighs: bool = False,
    ) -> None:
        """`unacknowledged` are the attempts whose ends wait for control; slots may share them.

        Reports tell the process's memory if it `weighs`, that is where memory has a limit.
        """
        self.executor = executor
        self._weighs = weighs
        self._sender = sender
        self._unacknowledged = {} if unacknowledged is None else unacknowledged

    def run(self, assignment: Assignment, hold: Hold, begin: Callable[[], bool]) -> Report:
        """Run one assignment and return how it ended.

        `begin` is asked right before the handler starts: False means to give the job back.
        """
        job = assignment.job
        if assignment.last is None:
            jobs_claimed.tell(self._sender, worker=job.leased_by, jobs=[job])
        # Before control hears of the start: it counts the time limit from then on, and no attempt
        # that it ended may look shorter than that.
        began, process = time.monotonic(), os.getpid()
        if not begin():
            return Report(job.lease, UNSTARTED)
        listened = False
        if assignment.last is None:
            outcome = self.executor.execute(job, hold, assignment.limit)
            listened = self._keep(job.lease)
        else:
            outcome = self.executor.bury(job, hold, assignment.limit, assignment.last)
        if os.getpid() != process:
            # A copy that the handler forked and let run on: the original reports, and runs what
            # waits. The copy has their memory, their sockets and no say.
            os._exit(0)
        memory = resident_bytes() if self._weighs else 0
        return Report(job.lease, outcome, time.monotonic() - began, memory, listened)

    def _keep(self, lease: Lease) -> bool:
        """Keep what there is to tell of an attempt until it is acknowledged."""
        ran, self.executor.ran = self.executor.ran, None
        if ran is None:
            return False
        self._unacknowledged[lease] = ran
        return True

    def acknowledge(self, ack: Ack) -> None:
        """Tell the project of an attempt's end, which is in the database now."""
        ran = self._unacknowledged.pop(ack.lease, None)
        if ran is not None:
            self.executor.tell(ran, ack.status)

    def interrupt(self, assignment: Assignment, cause: Cause) -> None:
        """End the assignment's handler as soon as it may be; from any thread."""
        self.executor.interrupts.request(INTERRUPTS[cause](cause.value), assignment.job.lease)
