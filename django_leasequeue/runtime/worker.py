"""The worker: one control loop, a pass of which is `turn()`.

Here it runs solo: handlers in its own main thread, renewals in a second thread with its own
connection, and a third connection for claims and settlements.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.dialect import family_of
from django_leasequeue.core.drain import anything_reserved, waiting_retries
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Settled, Verdict
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import bounds_for, open_control
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Holds
from django_leasequeue.runtime.housekeeping import Recovery
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.runtime.poll import Poll
from django_leasequeue.runtime.renewer import Renewer
from django_leasequeue.runtime.settling import log_settled, settle_held
from django_leasequeue.runtime.shutdown import Shutdown
from django_leasequeue.runtime.wakeup import Wakeup
from django_leasequeue.signals import jobs_claimed
from django_leasequeue.statuses import Status

__all__ = ["Worker", "WorkerOptions"]

_RELEASED = Outcome(
    End.RELEASED, reason="Released during shutdown before processing", started=False
)


def _setting(name: str) -> Any:
    """Return a dataclass field whose default is a LEASEQUEUE setting."""
    return field(default_factory=lambda: getattr(get_conf(), name))


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works; what is left out is as the settings say. Times are seconds.

    Raises ImproperlyConfigured for values that no worker could run with.
    """

    queues: str | Iterable[str] = "*"
    database: str = _setting("DATABASE")
    lease: float = _setting("LEASE")
    name: str = "worker"
    drain: bool = False
    drain_wait: float = 60
    max_jobs: int | None = None
    poll_min: float = _setting("POLL_MIN")
    poll_max: float = _setting("POLL_MAX")
    grace: float = _setting("GRACE")

    def __post_init__(self) -> None:
        if self.database not in connections:
            raise ImproperlyConfigured(f"{self.database!r} is no alias in DATABASES.")
        _check_transactions(self.database)
        try:
            parse_queues(self.queues)
        except ValueError as error:
            raise ImproperlyConfigured(f"--queues: {error}.") from None
        if not 0 < self.poll_min <= self.poll_max:
            raise ImproperlyConfigured("--poll-min must be above 0 and not above --poll-max.")
        if self.grace < 0 or self.drain_wait < 0:
            raise ImproperlyConfigured("--grace and --drain-wait must not be negative.")
        if self.max_jobs is not None and self.max_jobs < 1:
            raise ImproperlyConfigured("--max-jobs must be at least 1.")
        if not 0 < len(self.name) <= 100:
            raise ImproperlyConfigured("--name must have 1 to 100 characters.")
        shortest = min(self.lease, *(kind.lease or self.lease for kind in registry), self.lease)
        _check_lease(shortest)
        _check_atomic(self.database, self.lease)


def _check_transactions(database: str) -> None:
    """Refuse connections on which a handler's commit would not be a commit."""
    connection = connections[database]
    if not connection.settings_dict["AUTOCOMMIT"]:
        raise ImproperlyConfigured(
            f"DATABASES[{database!r}] has AUTOCOMMIT off: nothing that a handler commits would be "
            "committed. Give the worker settings with AUTOCOMMIT on."
        )
    if connection.in_atomic_block:
        raise ImproperlyConfigured(
            "The worker was started inside a transaction: it would see an old state for ever and "
            "commit nothing. Start it outside atomic()."
        )


def _check_atomic(database: str, lease: float) -> None:
    """Refuse atomic handlers that could hold up the renewal of their own lease."""
    if not family_of(connections[database]).one_writer:
        return
    for kind in registry:
        if kind.atomic and (kind.timeout is None or kind.timeout >= (kind.lease or lease)):
            raise ImproperlyConfigured(
                f"{kind.name}: with atomic=True on this database no lease can be renewed while the "
                f"handler runs. Give it a timeout below its lease ({kind.lease or lease:g} s)."
            )


def _check_lease(shortest: float) -> None:
    """Refuse leases that the database's own waits could outlast."""
    min_lease = get_conf().MIN_LEASE
    if shortest < min_lease:
        raise ImproperlyConfigured(
            f"A lease of {shortest:g} s is below LEASEQUEUE['MIN_LEASE'] ({min_lease:g} s): "
            "the database's own waits would outlast it."
        )
    # Servers count some waits in whole seconds, so none can be shorter than one.
    if max(1.0, *bounds_for(shortest).values()) >= shortest:
        raise ImproperlyConfigured(
            f"A lease of {shortest:g} s leaves no room for the database's own waits."
        )


class Worker:
    """Claims jobs and runs them until it is stopped. `run()` returns the exit code."""

    def __init__(self, queues: str | Iterable[str] = "*", **options: Any) -> None:
        """Take the fields of WorkerOptions; raise ImproperlyConfigured as it does."""
        self.options = WorkerOptions(queues=queues, **options)
        self.lease = self.options.lease
        self.database = self.options.database
        self.queues = parse_queues(self.options.queues)
        self.name = (
            f"{self.options.name}:{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        )
        self.wakeup = Wakeup()
        self.interrupts = Interrupts()
        self.shutdown = Shutdown(self.options.grace, self.wakeup, self.interrupts)
        self.lanes = Lanes(self.queues)
        self.holds = Holds()
        self.outage = Outage(get_conf().DATABASE_OUTAGE_LIMIT)
        self.poll = Poll(self.options.poll_min, self.options.poll_max)
        self.recovery = Recovery(self.lease)
        self.burials = Burials(
            self.database, self.name, self.lease, self.interrupts, self._is_stopping
        )
        self.executor = Executor(self.database, self.interrupts, self._is_stopping)
        self.renewer = Renewer(self.database, self.lease, self.holds, self.shutdown.on_beat)
        self.claim_settings = ClaimSettings(
            self.name, self.lease, {kind.name: kind.lease for kind in registry if kind.lease}
        )
        self.jobs_run = 0
        self._retrying: set[int] = set()
        self._connection: BaseDatabaseWrapper | None = None

    def _is_stopping(self) -> bool:
        return self.shutdown.stopping

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection for claims and settlements, opened when first used."""
        if self._connection is None:
            self._connection = open_control(self.database, self.lease)
        return self._connection

    def stop(self) -> None:
        """Drain: end after the running job. May be called from any thread, or a signal handler."""
        self.shutdown.stop()

    def run(self) -> int:
        """Work until stopped, drained or done with `max_jobs`; return the exit code.

        0 after an orderly end; 1 after a fatal error, logged as `worker_fatal`, or an outage that
        lasted longer than DATABASE_OUTAGE_LIMIT. Handles SIGTERM and SIGINT when it runs in the
        main thread. Leaves no connection of its own and no thread behind.
        """
        try:
            with self.shutdown.signals():
                return self._work()
        finally:
            self.wakeup.close()

    def _work(self) -> int:
        self.renewer.start()
        try:
            log_event("worker_started", worker=self.name, pid=os.getpid())
            self._loop()
            log_event("worker_stopped", worker=self.name, pid=os.getpid())
        except Exception as error:  # noqa: BLE001  (the supervisor starts a fresh process)
            log_event(
                "worker_fatal",
                level=logging.CRITICAL,
                worker=self.name,
                error=type(error).__qualname__,
                exc_info=error,
            )
            return 1
        finally:
            self._close_sessions()
        return 0

    def close(self) -> None:
        """Stop the renewer and close what `turn` opened; `run` does so by itself."""
        self._close_sessions()
        self.wakeup.close()

    def _close_sessions(self) -> None:
        self.renewer.stop()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _loop(self) -> None:
        while True:
            try:
                wait = self.turn()
            except Exception as error:
                if self.shutdown.stopping and self.outage.covers(self._project(), error):
                    return
                if not self.outage.covers(self._project(), error):
                    raise
                wait = self.outage.wait_seconds()
            if wait is None:
                return
            if wait:
                self.wakeup.wait(wait)

    def _project(self) -> BaseDatabaseWrapper:
        return connections[self.database]

    def turn(self) -> float | None:
        """Do one pass: housekeeping, one claim, its jobs.

        Returns seconds to wait before the next pass, 0 for none, None when the worker is to end.
        Raises database errors; the loop decides about them.
        """
        if self._is_stopping():
            return None
        self.recovery.run_if_due(self.connection, self._is_stopping)
        self.burials.run_if_due(self.connection)
        if self._is_stopping():
            return None
        since = ticks()
        jobs = claim(self.connection, self.lanes, 1, self.claim_settings)
        self.outage.over()
        if not jobs:
            log_event("claim_empty", level=logging.DEBUG, worker=self.name)
            return None if self._drained() else self.poll.wait_seconds()
        jobs_claimed.send_robust(sender=type(self), worker=self.name, jobs=jobs)
        if self._is_stopping():
            self._release(jobs, since)
            return None
        self.poll.active()
        for job in jobs:
            self._run_job(job, since)
        done = self.options.max_jobs is not None and self.jobs_run >= self.options.max_jobs
        return None if done else 0

    def _run_job(self, job: Claimed, since: float) -> None:
        hold = self.holds.add(job, since)
        try:
            log_event(
                "job_claimed",
                worker=self.name,
                job_id=job.job_id,
                job_type=job.job_type,
                queue=job.queue,
                attempt=job.attempt,
            )
            began = time.monotonic()
            outcome = self.executor.execute(job, hold)
            if outcome.settled:
                ending = Ending(job.lease, outcome)
                settled = Settled(ending, Verdict.SETTLED, Status.DONE)
            else:
                settled = settle_held(self.connection, outcome, hold, self.outage)
            log_settled(job, settled, time.monotonic() - began)
            self._note(job, settled)
        finally:
            self.holds.drop(job.lease)
            self.jobs_run += 1

    def _note(self, job: Claimed, settled: Settled) -> None:
        """Remember whose retries a drain has to wait for."""
        if self.options.drain and settled.status is Status.READY:
            self._retrying.add(job.job_id)

    def _release(self, jobs: list[Claimed], since: float) -> None:
        """Give claims back that no handler has begun (seed S1's shutdown race)."""
        for job in jobs:
            hold = self.holds.add(job, since)
            try:
                settled = settle_held(self.connection, _RELEASED, hold, self.outage)
            except Exception as error:
                log_event(
                    "claim_release_failed",
                    level=logging.ERROR,
                    job_id=job.job_id,
                    error=type(error).__qualname__,
                )
                raise
            finally:
                self.holds.drop(job.lease)
            lost = settled.verdict is Verdict.LOST
            log_event(
                "claim_release_lost" if lost else "claim_released_on_shutdown",
                level=logging.WARNING if lost else logging.INFO,
                worker=self.name,
                job_id=job.job_id,
                job_type=job.job_type,
                queue=job.queue,
            )

    def _drained(self) -> bool:
        """Tell whether a draining worker has nothing left to wait for."""
        if not self.options.drain:
            return False
        self.lanes.forget()
        self._retrying = waiting_retries(self.connection, self._retrying, self.options.drain_wait)
        return not self._retrying and not anything_reserved(self.connection, self.queues)
