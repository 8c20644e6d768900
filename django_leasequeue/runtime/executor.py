"""The executor: one attempt as a pipeline of steps, from a claimed job to an outcome as a value.

Whatever a handler raises, exits and interrupts included, becomes an outcome.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from django_leasequeue.codec import summarize
from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.sealing import sealed_claim
from django_leasequeue.declaration import Accepted
from django_leasequeue.exceptions import (
    JobCrashed,
    JobError,
    JobExpired,
    RejectedJob,
    UnknownJobType,
)
from django_leasequeue.logs import BoundJob, bind_job
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import Declaration, registry
from django_leasequeue.runtime.aftermath import Ran, hears_of_deaths, hears_of_ends, tell_end
from django_leasequeue.runtime.calling import call_failed, call_handler
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.runtime.endings import outcome_of_error, undescribed
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import (
    fresh_context,
    freshen_connections,
    keep_signals,
    left_open,
    open_transactions,
)
from django_leasequeue.signals import job_dead, job_started
from django_leasequeue.signing import check_signature
from django_leasequeue.statuses import Status

__all__ = ["Executor", "LastEnd"]


_IDLE = 1.0
_LAST_ERRORS = {End.EXPIRED.value: JobExpired, End.CRASHED.value: JobCrashed}


class LastEnd(NamedTuple):
    """How a dead job's last attempt ended: the word, and the text of its error."""

    end: str
    text: str


@dataclass(slots=True)
class Executor:
    """Runs handlers and `failed` hooks in the calling thread, on the project's connections."""

    alias: str
    interrupts: Interrupts
    stopping: Callable[[], bool]
    #: The newest attempt, for those who listen to its end.
    ran: Ran | None = None
    _error: BaseException | None = None
    _ended: float = 0.0
    _outer: Mapping[str, int] = field(default_factory=dict)

    def execute(self, job: Claimed, hold: Hold, limit: float | None = None) -> Outcome:
        """Run one attempt, which may take `limit` seconds, and return how it ended.

        Raises nothing. `settled` outcomes are committed already. Connections that the handler left
        unclean are discarded; a handler that left a transaction open has failed, for it was
        rolled back. An end that cannot even be described, by an error object that raises whatever
        is asked of it, is a failed attempt.
        """
        try:
            return self._execute(job, hold, limit)
        except BaseException as error:  # noqa: BLE001  (a job whose end nobody hears of never ends)
            self.interrupts.close()
            self._error = self.ran = None
            return undescribed(error, job, hold)

    def _execute(self, job: Claimed, hold: Hold, limit: float | None) -> Outcome:
        declaration: Declaration | None = None
        context: JobContext | None = None
        started = False
        self._error = None
        self._prepare()
        try:
            with keep_signals(), self.interrupts.window(job.lease):
                run = _bound_run(job)
                declaration = run(_declared, job)
                payload, arguments = run(_accept, job, declaration)
                context = self._context(job, payload, hold, limit)
                context.ensure_lease()  # the process may have stood still since the claim
                started = True
                run(partial(job_started.tell, Job, context=context))
                outcome = run(call_handler, declaration, context, arguments, self.interrupts)
        except BaseException as error:  # noqa: BLE001  (SystemExit is a handler's failure, too)
            self.interrupts.close()
            self._error = error
            outcome = outcome_of_error(error, job, declaration, context, started=started)
        outcome = self._close(outcome, job, declaration, context)
        self._keep(job, hold, context, outcome)
        self._ended = time.monotonic()
        return outcome

    def bury(self, job: Claimed, hold: Hold, limit: float | None, last: LastEnd) -> Outcome:
        """Run the `failed` hook of a dead job; a hook that did not end well is a FAILED outcome.

        A malformed payload has no hook, for no handler could have run with it; nor has a job
        whose signature is not right, which nobody may have asked for. Raises nothing.
        """
        try:
            return self._bury(job, hold, limit, last)
        except BaseException as error:  # noqa: BLE001  (as above)
            self.interrupts.close()
            return undescribed(error, job, hold)

    def _bury(self, job: Claimed, hold: Hold, limit: float | None, last: LastEnd) -> Outcome:
        declaration = registry.get(job.job_type)
        if declaration is None or (declaration.failed is None and not hears_of_deaths()):
            return Outcome(End.COMPLETED)
        error = _LAST_ERRORS.get(last.end, JobError)(last.text)
        self._prepare()
        outcome = Outcome(End.COMPLETED)
        try:
            with keep_signals(), self.interrupts.window(job.lease):
                run = _bound_run(job)
                payload = run(_last_payload, job, declaration)
                context = self._context(_shown(job, payload), payload or {}, hold, limit)
                run(partial(job_dead.tell, Job, context=context, error=error))
                if payload is not None and declaration.failed is not None:
                    run(call_failed, declaration.failed, context, error, self.interrupts)
        except BaseException as failure:  # noqa: BLE001  (nor may a hook's exit end the process)
            self.interrupts.close()
            outcome = Outcome(End.FAILED, error=summarize(failure, job_type=job.job_type))
        left_open(irregular=outcome.end is not End.COMPLETED, outer=self._outer)
        self._ended = time.monotonic()
        return outcome

    def _keep(self, job: Claimed, hold: Hold, context: JobContext | None, outcome: Outcome) -> None:
        """Keep what signals tell of this attempt's end; of a refused job without its payload."""
        error, self._error = self._error, None
        if not hears_of_ends():
            self.ran = None
            return
        shown = context or self._context(_shown(job, None), {}, hold, None)
        self.ran = Ran(shown, outcome, error)

    def tell(self, ran: Ran, status: Status | None) -> None:
        """Send the signals of an attempt's end between two jobs, as handlers run."""
        self._prepare()
        with keep_signals():
            _bound_run(ran.context)(tell_end, ran, status)
        left_open(irregular=False, outer=self._outer)
        self._ended = time.monotonic()

    def _prepare(self) -> None:
        self._outer = open_transactions()
        freshen_connections(after_idle=time.monotonic() - self._ended > _IDLE)

    def _context(
        self, job: Claimed, payload: dict[str, Any], hold: Hold, limit: float | None
    ) -> JobContext:
        return JobContext(
            job,
            payload,
            hold,
            alias=self.alias,
            interrupts=self.interrupts,
            stopping=self.stopping,
            ends_at=None if limit is None else ticks() + limit,
        )

    def _close(
        self,
        outcome: Outcome,
        job: Claimed,
        declaration: Declaration | None,
        context: JobContext | None,
    ) -> Outcome:
        irregular = outcome.end not in (End.COMPLETED, End.SKIPPED)
        aliases = left_open(irregular=irregular, outer=self._outer)
        if not aliases or irregular or outcome.settled:
            return outcome
        self._error = error = JobError(
            f"the handler left a transaction open on {', '.join(aliases)}"
        )
        return outcome_of_error(error, job, declaration, context, started=True)


def _bound_run(job: Claimed | JobContext) -> Callable[..., Any]:
    """Return `run` of a fresh context in which log records are bound to the job."""
    context = fresh_context()
    context.run(bind_job, BoundJob(job.job_id, job.job_type, job.queue, job.attempt))
    return context.run


def _shown(job: Claimed, payload: dict[str, Any] | None) -> Claimed:
    """Return the job; one whose payload was refused without its context, which is no better."""
    return job if payload is not None else replace(job, context="{}")


def _declared(job: Claimed) -> Declaration | None:
    """Return the job's type, None if there is none.

    A name that is not known may have a module of the project imported: not for a job that nobody
    with the key has written. Raises RejectedJob for that, and what such a module raises.
    """
    known = registry.get(job.job_type)
    if known is None and get_conf().SIGNING_KEYS:
        _genuine(job)
    return known or registry.find(job.job_type)


def _accept(job: Claimed, declaration: Declaration | None) -> Accepted:
    """Return payload and arguments, or raise RejectedJob for a job that can never run here."""
    if declaration is None:
        raise UnknownJobType("Unsupported job type")
    return declaration.accept(_genuine(job), job.payload_version)


def _genuine(job: Claimed) -> dict[str, Any]:
    """Return the payload of a job that is well formed and rightly signed, or raise RejectedJob."""
    sealed = sealed_claim(job)
    check_signature(sealed, job.signature)
    payload: dict[str, Any] = sealed.payload
    return payload


def _last_payload(job: Claimed, declaration: Declaration) -> dict[str, Any] | None:
    """Return the payload for the `failed` hook, None for one that no handler could have had."""
    try:
        return declaration.present(_genuine(job), job.payload_version)
    except UnknownJobType:
        raise  # newer code has the hook
    except RejectedJob:
        return None
