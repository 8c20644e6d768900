"""The statement sweep: an operation with each of its statements broken in turn, and what holds."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.core.transaction import CommitUnknown
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from reports.models import GeneratedReport
from tests.core.arrange import claim_jobs
from tests.faults import Fault, moved
from tests.faults.statements import When
from tests.waiting import wait_until

LEASE = 60.0
PLAIN = "sweep.plain"
WHEN: tuple[When, When] = ("before", "after")
#: What a worker's loop, or whoever enqueues, gets when no repeating has helped.
ESCAPING = (DatabaseError, InterfaceError, CommitUnknown)

Attempt = Callable[[Claimed], Outcome]
Break = Callable[[Fault], AbstractContextManager[Fault]]
_numbers = itertools.count()


@dataclass
class Round:
    """One operation on jobs of a queue of its own, broken once.

    A case says in `ends` which statuses the jobs must come to in the end.
    """

    connection: BaseDatabaseWrapper
    attempt: Attempt
    job_type: str = PLAIN
    ends: list[str] = field(default_factory=list)
    checks: list[Callable[[], None]] = field(default_factory=list)
    queue: str = field(default_factory=lambda: f"sweep-{next(_numbers)}")

    def enqueued(self, count: int, **options: Any) -> list[int]:
        """Enqueue jobs that must be done in the end."""
        self.ends += ["done"] * count
        options["queue"] = self.queue
        jobs = enqueue_many([(self.job_type, {"n": n}, options) for n in range(count)])
        return [job.id for job in jobs]

    def claimed(self, count: int, **options: Any) -> list[Claimed]:
        """Enqueue and claim jobs that must be done in the end."""
        self.enqueued(count, **options)
        return self.claim(count)

    def claim(self, count: int) -> list[Claimed]:
        """Claim what is due in the round's queue."""
        return claim_jobs(self.connection, count, lanes=Lanes((self.queue,)), lease=LEASE)

    def run(self, job: Claimed) -> None:
        """Run a job's handler and settle as a worker does: again while the row is locked."""
        outcome = self.attempt(job)
        ending = Ending(job.lease, outcome)
        if outcome.settled:
            assert Job.objects.get(pk=job.job_id).status == "done"
        else:
            wait_until(lambda: settle(self.connection, [ending])[0].verdict is not Verdict.PENDING)

    def verify(self) -> None:
        """Ask the invariants, once all is worked off."""
        jobs = list(Job.objects.filter(queue_name=self.queue).order_by("pk"))
        assert Counter(job.status for job in jobs) == Counter(self.ends)
        attempts = JobAttempt.objects.filter(job__queue_name=self.queue).order_by("job", "number")
        claims = [(job.pk, number) for job in jobs for number in range(1, job.claims + 1)]
        found = list(attempts.values_list("job", "number"))
        assert found == claims, "not one attempt row per attempt"
        for check in self.checks:
            check()
        if self.job_type != PLAIN:
            effects = GeneratedReport.objects.filter(tenant_id__in=[f"job-{j.pk}" for j in jobs])
            done = [f"job-{job.pk}" for job in jobs if job.status == "done"]
            assert list(effects.order_by("pk").values_list("tenant_id", flat=True)) == done


@contextmanager
def noting(text: str) -> Iterator[None]:
    """Say with an error which statement was broken."""
    try:
        yield
    except BaseException as error:
        error.add_note(text)
        raise


Case = Callable[[Round], Callable[[], object]]


@dataclass
class Sweep:
    """Breaks every statement of a case in turn; `breaking` says on which connections."""

    connection: BaseDatabaseWrapper
    attempt: Attempt
    breaking: Break

    def run(self, case: Case, codes: Sequence[Any], *, for_good: bool = False) -> None:
        """Break one statement a round, from the first to the last, with each code; then look.

        `for_good`: and all that come after it, and what is raised in the end is let pass.
        """
        whole, unbroken = self._break(case, Fault(codes[0], at=0))
        assert unbroken.seen
        rounds = {"no statement": whole}
        for code, when in itertools.product(codes, WHEN):
            for at, sql in enumerate(unbroken.seen, start=1):
                fault = Fault(code, at=at, when=when, times=100 if for_good else 1)
                place = f"{code} {when} statement {at}: {sql}"
                with noting(place):
                    rounds[place], _ = self._break(case, fault, ESCAPING if for_good else ())
                    assert fault.fired, f"never met among {fault.seen}"
        self._work_off(rounds.values())
        for place, now in rounds.items():
            with noting(place):
                now.verify()

    def _break(
        self, case: Case, fault: Fault, passing: tuple[type[Exception], ...] = ()
    ) -> tuple[Round, Fault]:
        now = Round(self.connection, self.attempt)
        act = case(now)
        with self.breaking(fault), suppress(*passing):
            act()
        return now, fault

    def _work_off(self, rounds: Iterable[Round]) -> None:
        """Let the lease and ten seconds go by, recover, then run whatever is due."""
        with moved(self.connection, LEASE + 10):
            wait_until(self._recovered, message="reserved after lease + 10 s")
            jobs = {now.queue: now.claim(10) for now in rounds}
            plain = [job for now in rounds if now.job_type == PLAIN for job in jobs[now.queue]]
            endings = [Ending(job.lease, Outcome(End.COMPLETED)) for job in plain]
            assert {s.verdict for s in settle(self.connection, endings)} <= {Verdict.SETTLED}
            for now in rounds:
                for job in jobs[now.queue] if now.job_type != PLAIN else ():
                    now.run(job)

    def _recovered(self) -> bool:
        recover_batch(self.connection)
        return not Job.objects.filter(status="reserved").exists()
