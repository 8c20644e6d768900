"""Running due jobs in the test's own thread and on its connection, as a worker runs them."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.operate import recover
from django_leasequeue.models import Job
from django_leasequeue.outcomes import Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Charge, Ended, died, limit_of
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.messages import Assignment
from django_leasequeue.runtime.settlements import Settlements, ack_of, log_settled
from django_leasequeue.runtime.slots import Slot
from django_leasequeue.runtime.worker import Worker
from django_leasequeue.signals import job_finished, lease_lost

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

    Claim, codec, middleware, signals, executor, `failed` hooks and settlement are the worker's own;
    only the processes and the time limits are not there. It works inside a TestCase, on the
    test's connection and in its transaction: a handler's on_commit callbacks run when the handler
    has ended. Jobs that wait for their time or a retry wait for `advance` or `freeze`. `limit` is
    how many attempts at most. With `raise_errors` an attempt's exception is raised once it is
    settled. Raises RuntimeError after 10 000 attempts: jobs that enqueue themselves never end.
    """
    alias = using or get_conf().DATABASE
    inline = _Inline.on(alias, parse_queues(queues))
    with _same_connection(alias), _errors_of_attempts() as errors:
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
def _same_connection(alias: str) -> Iterator[None]:
    """Let the thread have its connection object again after the block, whatever was discarded.

    The test runner holds it, to remove its database in the end.
    """
    before = connections[alias]
    try:
        yield
    finally:
        now = connections[alias]
        if now is not before:
            before.connection = None
            before.connect()
            connections[alias] = before
            if now.connection is not None:
                now.connection.close()


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

    @classmethod
    def on(cls, alias: str, queues: tuple[str, ...]) -> _Inline:
        lease = get_conf().LEASE
        holds = Holds()
        executor = Executor(alias, Interrupts(), lambda: False)
        slot = Slot(executor, sender=Worker)
        burials = Burials(_NAME, lease, holds)
        return cls(alias, queues, slot, holds, Settlements(), burials, lease)

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
        with _callbacks_after(self.connection):
            ended = self._run(charge)
        self._settle(ended)
        self._bury()
        return ended

    def _run(self, charge: Charge) -> Ended:
        def begin() -> bool:
            charge.start()
            return True

        with _as_in_autocommit(self.connection):
            report = self.slot.run(charge.assignment, charge.hold, begin)
        return Ended(charge, _as_seen(charge, report.outcome), report.seconds)

    def _settle(self, ended: Ended) -> None:
        self.settlements.add(ended)
        for done, settled in self.settlements.flush(self.connection):
            log_settled(done, settled, stopping=False)
            self.holds.drop(done.charge.job.lease)
            with _callbacks_after(self.connection), _as_in_autocommit(self.connection):
                self.slot.acknowledge(ack_of(done, settled))

    def _bury(self) -> None:
        self.burials.wake()
        while (charge := self.burials.take(self.connection)) is not None:
            with _callbacks_after(self.connection):
                self.burials.add(self._run(charge))
            self.burials.flush(self.connection)


def _as_seen(charge: Charge, outcome: Outcome) -> Outcome:
    """Return how the worker sees an attempt end: a process that died reports nothing."""
    died_there = outcome.error is not None and outcome.error.error_class == SIMULATED_CRASH
    return died(charge, -signal.SIGKILL) if died_there else outcome


@contextmanager
def _as_in_autocommit(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Inside the test's transaction run the block in a savepoint that only a broken one undoes.

    A handler in autocommit mode loses nothing but the statement that failed; here a failed
    statement may have broken the transaction.
    """
    if not connection.in_atomic_block:
        yield
        return
    block = transaction.atomic(using=connection.alias)
    # As the test's own: a durable block may be inside.
    block._from_testcase = True  # type: ignore[attr-defined]  # noqa: SLF001
    with block:
        yield
        if _is_broken(connection):
            transaction.set_rollback(True, using=connection.alias)


def _is_broken(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether an error has broken the transaction (PostgreSQL: any error does)."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return True
    return False


@contextmanager
def _callbacks_after(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Run the on_commit callbacks of the block after it, where the test's transaction goes on."""
    before = len(connection.run_on_commit)
    yield
    while connection.in_atomic_block and len(connection.run_on_commit) > before:
        _sids, callback, robust = connection.run_on_commit.pop(before)  # type: ignore[misc]
        try:
            callback()
        except Exception:
            if not robust:
                raise
