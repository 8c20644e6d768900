"""A round: one operation on jobs of a queue of its own, broken once, and what holds of it after."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from reports.models import GeneratedReport
from tests.core.arrange import claim_jobs
from tests.sweep.spending import spent
from tests.waiting import wait_until

LEASE = 60.0
PLAIN = "sweep.plain"
FINAL = {"done", "dead", "cancelled"}

Attempt = Callable[[Claimed], Outcome]
_numbers = itertools.count()


@dataclass
class Round:
    """One operation on jobs of a queue of its own.

    A case says in `ends` what each job must come to, in the order of ids: the first word when the
    operation succeeded; any of "dead|done" when its caller heard of an error, or was killed.
    """

    connection: BaseDatabaseWrapper
    attempt: Attempt
    job_type: str = PLAIN
    ends: list[str] = field(default_factory=list)
    checks: list[Callable[[], None]] = field(default_factory=list)
    #: What is left to do when the leases have run out, beside running jobs.
    later: list[Callable[[], object]] = field(default_factory=list)
    #: A single error may reach the caller, who then repeats.
    raises: bool = False
    #: The caller repeats after such an error or a crash, as a request or an operator does.
    repeats: bool = False
    #: Jobs that may have had an attempt that leaves no row.
    unrecorded: set[int] = field(default_factory=set)
    #: Attempts that a job had before a requeue, and those given to it by hand.
    before: dict[int, int] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)
    #: The operation did not end: it was killed, or an error reached its caller.
    crashed: bool = False
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

    def ended(self, end: End, count: int = 1, *, bury: bool = False, **options: Any) -> list[int]:
        """Enqueue jobs and let their first attempts have ended so; return their ids."""
        jobs = self.claimed(count, **options)
        endings = [Ending(job.lease, Outcome(end, bury=bury)) for job in jobs]
        assert self.settle(*endings) == [Verdict.SETTLED] * count
        return [job.job_id for job in jobs]

    def claim(self, count: int) -> list[Claimed]:
        """Claim what is due in the round's queue."""
        return claim_jobs(self.connection, count, lanes=Lanes((self.queue,)), lease=LEASE)

    def settle(self, *endings: Ending) -> list[Verdict]:
        """Settle as a worker does: again while a row is locked."""

        def verdicts() -> list[Verdict]:
            found = [settled.verdict for settled in settle(self.connection, endings)]
            return [] if Verdict.PENDING in found else found

        return wait_until(verdicts) if endings else []

    def run(self, job: Claimed) -> None:
        """Run a job's handler, if it has one, and settle."""
        plain = self.job_type == PLAIN
        outcome = Outcome(End.COMPLETED) if plain else self.attempt(job)
        if outcome.settled:
            assert Job.objects.get(pk=job.job_id).status == "done"
        else:
            self.settle(Ending(job.lease, outcome))

    def work_off(self) -> bool:
        """Run what is due; tell whether nothing is left to run."""
        for job in self.claim(10):
            self.run(job)
        left = Job.objects.filter(queue_name=self.queue, status__in=("ready", "reserved"))
        return not left.exists()

    def verify(self) -> None:
        """Ask the invariants, once all is worked off."""
        jobs = list(Job.objects.filter(queue_name=self.queue).order_by("pk"))
        self._verify_ends(jobs)
        attempts = JobAttempt.objects.filter(job__queue_name=self.queue).order_by("number")
        for job in jobs:
            mine = [attempt for attempt in attempts if attempt.job_id == job.pk]
            self._verify_counters(job, mine)
        for check in self.checks:
            check()
        if self.job_type != PLAIN:
            effects = GeneratedReport.objects.filter(tenant_id__in=[f"job-{j.pk}" for j in jobs])
            done = [f"job-{job.pk}" for job in jobs if job.status == "done"]
            assert list(effects.order_by("pk").values_list("tenant_id", flat=True)) == done

    def _verify_ends(self, jobs: list[Job]) -> None:
        """None is lost, none is there twice, none is held, and each ended as it may."""
        expected = self.ends
        if self.crashed and len(jobs) < len(expected):
            expected = [ends for ends in expected if "missing" not in ends]
        assert len(jobs) == len(expected), f"{len(jobs)} jobs for {expected}"
        for job, ends in zip(jobs, expected, strict=True):
            allowed = ends.split("|") if self.crashed else ends.split("|")[:1]
            assert job.status in allowed, f"job {job.pk} is {job.status}: {allowed}"
            assert job.lease_token is None
            assert job.lease_until is None or job.status == "dead"
            assert job.live_key == (None if job.status in FINAL else job.key_hash)

    def _verify_counters(self, job: Job, attempts: list[JobAttempt]) -> None:
        """One row per attempt and token, and the counters are what these attempts cost."""
        assert len({bytes(attempt.token) for attempt in attempts}) == len(attempts)
        numbers = [attempt.number for attempt in attempts]
        missing = set(range(1, job.claims + 1)) - set(numbers)
        assert set(numbers) <= set(range(1, job.claims + 1)), "a row without an attempt"
        assert len(missing) <= (job.pk in self.unrecorded), f"no row of attempts {missing}"
        since = self.before.get(job.pk, 0)
        cost = spent(attempt.outcome for attempt in attempts if attempt.number > since)
        assert job.attempts == cost.attempts + self.given.get(job.pk, 0)
        assert job.crashes == cost.crashes


Case = Callable[[Round], Callable[[], object]]
