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
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.drain import anything_reserved, waiting_retries
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, Settled, Verdict
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Hold, Holds
from django_leasequeue.runtime.housekeeping import Recovery
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.options import WorkerOptions, shortest_lease
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


_LEAST_RELEASE_SECONDS = 5.0


class ReleaseFailed(LeaseQueueError):
    """A claim could not be given back: its lease has to run out."""


class Worker:
    """Claims jobs and runs them until it is stopped. `run()` returns the exit code."""

    def __init__(self, queues: str | Iterable[str] = "*", **options: Any) -> None:
        """Take the fields of WorkerOptions; raise ImproperlyConfigured as it does."""
        self.options = WorkerOptions(queues=queues, **options)
        self.lease = self.options.lease
        self.shortest_lease = shortest_lease(self.lease)
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
            self.database, self.name, self.lease, self.holds, self.interrupts, self._is_stopping
        )
        self.executor = Executor(self.database, self.interrupts, self._is_stopping)
        self.renewer = Renewer(
            self.database, self.shortest_lease, self.holds, self.shutdown.on_beat
        )
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
            self._connection = open_control(self.database, self.shortest_lease)
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
        jobs = self._claim()
        if not jobs and self.options.drain and not self._waits_for_others():
            # What was enqueued by the jobs just waited for may be in lanes not known yet.
            self.lanes.forget()
            jobs = self._claim()
            if not jobs:
                return None
        if not jobs:
            return self.poll.wait_seconds()
        return self._run_jobs(jobs, since)

    def _run_jobs(self, jobs: list[Claimed], since: float) -> float | None:
        """Run what was claimed, unless a stop came with it; return what `turn` returns."""
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
                settled = self._settle(outcome, hold, within=hold.seconds)
            log_settled(job, settled, time.monotonic() - began)
            self._note(job, settled)
            if settled.status is Status.DEAD:
                self.burials.wake()
        finally:
            self.holds.drop(job.lease)
            self.jobs_run += 1

    def _settle(self, outcome: Outcome, hold: Hold, *, within: float) -> Settled:
        hurry = self.shutdown.grace_over
        return settle_held(self.connection, outcome, hold, self.outage, within=within, hurry=hurry)

    def _note(self, job: Claimed, settled: Settled) -> None:
        """Remember whose retries a drain has to wait for."""
        if self.options.drain and settled.status is Status.READY:
            self._retrying.add(job.job_id)

    def _release(self, jobs: list[Claimed], since: float) -> None:
        """Give claims back that no handler has begun (seed S1's shutdown race).

        Raises what kept a claim from being given back: its lease runs out, and the exit code is 1.
        """
        for job in jobs:
            hold = self.holds.add(job, since)
            try:
                verdict = self._release_one(hold)
            except Exception as error:
                log_event(
                    "claim_release_failed",
                    level=logging.ERROR,
                    worker=self.name,
                    job_id=job.job_id,
                    error=type(error).__qualname__,
                )
                raise
            finally:
                self.holds.drop(job.lease)
            lost = verdict is Verdict.LOST
            log_event(
                "claim_release_lost" if lost else "claim_released_on_shutdown",
                level=logging.WARNING if lost else logging.INFO,
                worker=self.name,
                job_id=job.job_id,
                job_type=job.job_type,
                queue=job.queue,
            )

    def _release_one(self, hold: Hold) -> Verdict:
        within = min(hold.seconds, max(self.options.grace, _LEAST_RELEASE_SECONDS))
        settled = self._settle(_RELEASED, hold, within=within)
        if settled.verdict is Verdict.PENDING:
            raise ReleaseFailed(f"job {hold.lease.job_id}: it could not be released in time")
        return settled.verdict

    def _claim(self) -> list[Claimed]:
        jobs = claim(self.connection, self.lanes, 1, self.claim_settings)
        self.outage.over()
        if not jobs:
            log_event("claim_empty", level=logging.DEBUG, worker=self.name)
        return jobs

    def _waits_for_others(self) -> bool:
        """Tell whether a draining worker has reserved jobs or its own retries to wait for."""
        self._retrying = waiting_retries(self.connection, self._retrying, self.options.drain_wait)
        return bool(self._retrying) or anything_reserved(self.connection, self.queues)
