"""One thread that runs attempts one after the other, as a worker's slot does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connections

from django_leasequeue import enqueue, job
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from tests.core.arrange import claim_one
from tests.waiting import wait_until

T = TypeVar("T")
_NAME = "in a slot"


class Slot:
    """A thread with an executor, and with connections that are the handlers' own."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.executor = Executor("default", Interrupts(), lambda: False)

    def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns in the slot's thread, outside of any attempt."""
        return self._pool.submit(work).result()

    def execute(self, claimed: Claimed) -> Outcome:
        """Run one attempt of a claimed job."""
        hold = Hold(claimed.lease, 60)
        hold.extend(ticks())
        return self.do(lambda: self.executor.execute(claimed, hold, None))

    def finish(self, claimed: Claimed) -> Outcome:
        """Run one attempt of a claimed job, settle it and return how it ended."""
        outcome = self.execute(claimed)
        if not outcome.settled:
            # A session that the attempt threw away may hold the job's row for a moment more.
            wait_until(lambda: _settled(Ending(claimed.lease, outcome)))
        return outcome

    def attempt(self, work: Callable[..., Any], **policy: Any) -> Outcome:
        """Run `work` as the one attempt of a new job and settle it; return how it ended."""
        job(_NAME, **policy)(work)
        try:
            made = enqueue(_NAME)
            claimed = claim_one(connections["default"])
            outcome = self.finish(claimed)
            Job.objects.filter(pk=made.id).update(queue_name="over")  # its retry is no next job
            return outcome
        finally:
            registry.remove(_NAME)

    def result(self, work: Callable[..., Any], **policy: Any) -> Any:
        """Return the result of an attempt that completes."""
        results: list[Any] = []
        outcome = self.attempt(lambda: results.append(work()), **policy)
        assert outcome.end == "completed", outcome
        return results[0]


def _settled(ending: Ending) -> bool:
    (settled,) = settle(connections["default"], [ending])
    return settled.verdict is not Verdict.PENDING


@contextmanager
def opened() -> Iterator[Slot]:
    """A slot for the block; its connections are closed at the end."""
    with ThreadPoolExecutor(1, thread_name_prefix="slot") as pool:
        slot = Slot(pool)
        try:
            yield slot
        finally:
            slot.do(connections.close_all)
