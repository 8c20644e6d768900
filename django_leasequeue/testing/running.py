"""Running due jobs in the test's own thread and on its connection, as a worker runs them."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.operate import recover
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime import aftermath
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Charge, Ended, died, limit_of
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.runtime.endings import outcome_of_error
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.fenced import log_callback
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.messages import Assignment
from django_leasequeue.runtime.settlements import Settlements, ack_of, log_settled
from django_leasequeue.runtime.slots import Slot
from django_leasequeue.runtime.worker import Worker
from django_leasequeue.signals import job_finished, lease_lost
from django_leasequeue.testing.transactions import (
    as_in_autocommit,
    callbacks_after,
    same_connection,
)

__all__ = ["Ran", "run_jobs"]

_NAME = "run_jobs"
#: The class in `testing.faults`, as an error's summary names it.
SIMULATED_CRASH = "SimulatedCrash"
_MOST = 10_000


class Ran(NamedTuple):
    """One attempt that `run_jobs` ran: the job as it is afterwards, and the attempt's word.

    `outcome` is as in the attempt's row: "completed", "failed", …; `error` is the exception that
    ended the attempt, or None.
    """

    job: Job
    outcome: str
    error: BaseException | None


def run_jobs(
    *,
    queues: str | Iterable[str] = "*",
    using: str | None = None,
    limit: int | None = None,
    raise_errors: bool = False,
) -> list[Ran]:
    """Run every job that is due, those that they enqueue included; return the attempts in order.

    Of `queues`, names in order or "*". Claim, codec, middleware, signals, executor, `failed` hooks
    and settlement are the worker's own; only the processes and the time limits are not there. It
    works inside a TestCase, on the test's connection and in its transaction: a handler's on_commit
    callbacks run when the handler has ended. Jobs that wait for their time or a retry wait for
    `advance` or `freeze`. `limit` is how many attempts of jobs at most. With `raise_errors` an
    attempt's exception is raised once it is settled. Raises RuntimeError after 10 000 attempts:
    jobs that enqueue themselves never end.
    """
    alias = using or get_conf().DATABASE
    inline = _Inline.on(alias, parse_queues(queues))
    with same_connection(alias), _errors_of_attempts() as errors:
        return _run_all(inline, errors, limit, raise_errors=raise_errors)


def _run_all(
    inline: _Inline,
    errors: dict[int, BaseException | None],
    limit: int | None,
    *,
    raise_errors: bool,
) -> list[Ran]:
    ran: list[Ran] = []
    while limit is None or len(ran) < limit:
        if len(ran) >= _MOST:
            raise RuntimeError(f"run_jobs ran {_MOST} attempts and there are still jobs due")
        ended = inline.run_one()
        if ended is None:
            break
        error = errors.pop(ended.charge.job.job_id, None)
        ran.append(Ran(inline.read(ended.charge.job.job_id), ended.outcome.end.value, error))
        if raise_errors and error is not None:
            raise error
    return ran


@contextmanager
def _errors_of_attempts() -> Iterator[dict[int, BaseException | None]]:
    """Note the exceptions that end attempts, by job."""
    errors: dict[int, BaseException | None] = {}

    def note(sender: Any, context: JobContext, error: BaseException | None, **kwargs: Any) -> None:
        errors[context.job_id] = error

    for told in (job_finished, lease_lost):
        told.connect(note, sender=Job, weak=False)
    try:
        yield errors
    finally:
        for told in (job_finished, lease_lost):
            told.disconnect(note, sender=Job)


@dataclass(slots=True)
class _Inline:
    """A worker without processes."""

    alias: str
    queues: tuple[str, ...]
    slot: Slot
    holds: Holds
    settlements: Settlements
    burials: Burials
    lease: float
    unacknowledged: dict[Lease, aftermath.Ran]

    @classmethod
    def on(cls, alias: str, queues: tuple[str, ...]) -> _Inline:
        lease = get_conf().LEASE
        holds = Holds()
        executor = Executor(alias, Interrupts(), lambda: False)
        told: dict[Lease, aftermath.Ran] = {}
        slot = Slot(executor, sender=Worker, unacknowledged=told)
        burials = Burials(_NAME, lease, holds)
        return cls(alias, queues, slot, holds, Settlements(), burials, lease, told)

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The thread's connection; what a handler leaves unclean is replaced."""
        return connections[self.alias]

    def read(self, job_id: int) -> Job:
        """Return a job as it is now."""
        return Job.objects.using(self.alias).get(pk=job_id)

    def run_one(self) -> Ended | None:
        """Run, settle and tell of one attempt, and bury what died; None when nothing is due."""
        recover(using=self.alias)
        leases = {kind.name: kind.lease for kind in registry if kind.lease}
        since = ticks()
        # Fresh lanes each time: what a worker remembers for a second may be wrong by now.
        jobs = claim(
            self.connection, Lanes(self.queues), 1, ClaimSettings(_NAME, self.lease, leases)
        )
        if not jobs:
            self._bury()
            return None
        hold = self.holds.add(jobs[0], since)
        charge = Charge(Assignment(jobs[0], hold.trusted_until, limit_of(jobs[0])), hold, since)
        with callbacks_after(self.connection) as raised:
            ended = self._run(charge)
        for error in raised:
            ended = self._failed_by(error, ended)
        self._settle(ended)
        self._bury()
        return ended

    def _failed_by(self, error: Exception, ended: Ended) -> Ended:
        """Return how an attempt ended whose on_commit callback raised.

        In a worker the callback ran inside the handler, unless complete() had committed.
        """
        job = ended.charge.job
        if ended.outcome.settled or ended.outcome.end is not End.COMPLETED:
            log_callback(job, error)
            return ended
        ran = self.unacknowledged[job.lease]
        outcome = outcome_of_error(
            error, job, registry.get(job.job_type), ran.context, started=True
        )
        self.unacknowledged[job.lease] = ran._replace(outcome=outcome, error=error)
        return ended._replace(outcome=outcome)

    def _run(self, charge: Charge) -> Ended:
        def begin() -> bool:
            charge.start()
            return True

        with as_in_autocommit(self.connection):
            report = self.slot.run(charge.assignment, charge.hold, begin)
        return Ended(charge, _as_seen(charge, report.outcome), report.seconds)

    def _settle(self, ended: Ended) -> None:
        self.settlements.add(ended)
        for done, settled in self.settlements.flush(self.connection):
            log_settled(done, settled, stopping=False)
            self.holds.drop(done.charge.job.lease)
            with callbacks_after(self.connection) as raised, as_in_autocommit(self.connection):
                self.slot.acknowledge(ack_of(done, settled))
            _raise_first(raised)

    def _bury(self) -> None:
        self.burials.wake()
        while (charge := self.burials.take(self.connection)) is not None:
            with callbacks_after(self.connection) as raised:
                self.burials.add(self._run(charge))
            self.burials.flush(self.connection)
            _raise_first(raised)


def _as_seen(charge: Charge, outcome: Outcome) -> Outcome:
    """Return how the worker sees an attempt end: a process that died reports nothing."""
    died_there = outcome.error is not None and outcome.error.error_class == SIMULATED_CRASH
    return died(charge, -signal.SIGKILL) if died_there else outcome


def _raise_first(raised: list[Exception]) -> None:
    for error in raised:
        raise error
