"""Burials: runs the `failed` hooks of dead jobs, whichever worker saw them die."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import decode_payload
from django_leasequeue.core.attempts import last_end
from django_leasequeue.core.bury import close_burial, postpone_burial, take_burials
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobCrashed, JobError, JobExpired, RejectedJob
from django_leasequeue.outcomes import End
from django_leasequeue.registry import registry
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.runtime.holds import Hold, Holds
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import freshen_connections, left_open

__all__ = ["Burials"]

_TRY_AGAIN = 30.0
_ERRORS = {End.EXPIRED.value: JobExpired, End.CRASHED.value: JobCrashed}


@dataclass(slots=True)
class Burials:
    """Buries dead jobs one after the other, every min(5 s, lease / 12)."""

    alias: str
    worker: str
    lease: float
    holds: Holds
    interrupts: Interrupts
    stopping: Callable[[], bool]
    _due: float = 0.0

    def wake(self) -> None:
        """A job has just died: look at the next pass."""
        self._due = 0.0

    def run_if_due(self, connection: BaseDatabaseWrapper) -> None:
        """Take what waits for its burial and run the hooks, unless the worker stops."""
        if ticks() < self._due:
            return
        while not self.stopping() and self._one(connection):
            pass
        self._due = ticks() + min(5.0, self.lease / 12)

    def _one(self, connection: BaseDatabaseWrapper) -> bool:
        """Take one burial and see it through; return whether there may be more."""
        since = ticks()
        taken = take_burials(
            connection,
            with_hook=[kind.name for kind in registry if kind.failed is not None],
            without_hook=[kind.name for kind in registry if kind.failed is None],
            worker=self.worker,
            seconds=self.lease,
        )
        for job in taken:
            hold = self.holds.add(job, since)
            try:
                ran = self._bury(connection, job, hold)
            finally:
                self.holds.drop(job.lease)
            if ran:
                close_burial(connection, job.lease)
            else:
                postpone_burial(connection, job.lease, _TRY_AGAIN)
        return bool(taken)

    def _bury(self, connection: BaseDatabaseWrapper, job: Claimed, hold: Hold) -> bool:
        """Run the hook; return False when it raised, so that it is tried again.

        A malformed payload has no hook: no handler could have run with it.
        """
        declaration = registry.get(job.job_type)
        if declaration is None or declaration.failed is None:
            return True
        try:
            payload = decode_payload(job.payload)
        except RejectedJob:
            return True
        end, text = last_end(connection, job.job_id)
        context = JobContext(
            job,
            payload,
            hold,
            alias=self.alias,
            interrupts=self.interrupts,
            stopping=self.stopping,
        )
        freshen_connections(after_idle=True)
        failed: BaseException | None = None
        try:
            with self.interrupts.window():
                declaration.failed(context, _ERRORS.get(end, JobError)(text))
        except BaseException as error:  # noqa: BLE001  (the worker outlives project code's exits)
            failed = error
        left_open(irregular=failed is not None)
        if failed is not None:
            log_event(
                "burial_failed",
                level=logging.ERROR,
                job_id=job.job_id,
                job_type=job.job_type,
                error=type(failed).__qualname__,
            )
        return failed is None
