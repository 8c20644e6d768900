"""The executor: one attempt as a pipeline of steps, from a claimed job to an outcome as a value.

Whatever a handler raises, exits and interrupts included, becomes an outcome.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings

from django_leasequeue.codec import clean_text, decode_payload, summarize
from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import (
    JobCancelled,
    JobError,
    JobInterrupted,
    JobTimeout,
    Reject,
    RejectedJob,
    Skip,
    Snooze,
)
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import Declaration, registry
from django_leasequeue.results import JobResult
from django_leasequeue.retry import as_seconds
from django_leasequeue.runtime.backoff import delay_after
from django_leasequeue.runtime.context import JobContext, encode_result
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import freshen_connections, left_open

__all__ = ["Executor"]


_IDLE = 1.0


@dataclass(slots=True)
class Executor:
    """Runs handlers in the calling thread, on the project's own connections."""

    alias: str
    interrupts: Interrupts
    stopping: Callable[[], bool]
    _ended: float = 0.0

    def execute(self, job: Claimed, hold: Hold) -> Outcome:
        """Run one attempt and return how it ended; raises nothing.

        `settled` outcomes are committed already. Connections that the handler left unclean are
        discarded; a handler that left a transaction open has failed, for it was rolled back.
        """
        declaration = registry.get(job.job_type)
        context: JobContext | None = None
        started = False
        freshen_connections(after_idle=time.monotonic() - self._ended > _IDLE)
        try:
            payload = _accept(job, declaration)
            context = JobContext(
                job,
                payload,
                hold,
                alias=self.alias,
                interrupts=self.interrupts,
                stopping=self.stopping,
            )
            context.ensure_lease()  # the process may have stood still since the claim
            started = True
            with self.interrupts.window():
                outcome = _call(declaration, context, payload)
        except BaseException as error:  # noqa: BLE001  (SystemExit is a handler's failure, too)
            outcome = _from_error(error, job, declaration, context, started=started)
        outcome = self._close(outcome, job, declaration, context)
        self._ended = time.monotonic()
        return outcome

    def _close(
        self,
        outcome: Outcome,
        job: Claimed,
        declaration: Declaration | None,
        context: JobContext | None,
    ) -> Outcome:
        irregular = outcome.end not in (End.COMPLETED, End.SKIPPED)
        aliases = left_open(irregular=irregular)
        if not aliases or irregular or outcome.settled:
            return outcome
        error = JobError(f"the handler left a transaction open on {', '.join(aliases)}")
        return _from_error(error, job, declaration, context, started=True)


def _accept(job: Claimed, declaration: Declaration | None) -> dict[str, Any]:
    """Return the payload, or raise RejectedJob for a job that can never run here."""
    if declaration is None:
        raise RejectedJob("Unsupported job type")
    payload = decode_payload(job.payload)
    declaration.check_payload(payload)
    return payload


def _call(declaration: Declaration | None, context: JobContext, payload: dict[str, Any]) -> Outcome:
    assert declaration is not None  # noqa: S101  (_accept has refused a job without one)
    if not declaration.atomic:
        return _outcome_of(_handle(declaration, context, payload), context)
    ended: list[Outcome] = []
    result: list[Any] = []

    def ending() -> Outcome:
        ended.append(_outcome_of(result[0], context))
        return ended[0]

    with context.transaction(ending):
        result.append(_handle(declaration, context, payload))
    return _settled(ended[0])


def _handle(declaration: Declaration, context: JobContext, payload: dict[str, Any]) -> Any:
    arguments = (context,) if declaration.takes_context else ()
    if inspect.iscoroutinefunction(declaration.handler):
        return async_to_sync(declaration.handler)(*arguments, **payload)
    return declaration.handler(*arguments, **payload)


def _outcome_of(result: Any, context: JobContext) -> Outcome:
    if context.completed:
        return Outcome(End.COMPLETED, settled=True)
    if isinstance(result, JobResult):
        if result.is_skipped:
            return Outcome(End.SKIPPED, reason=clean_text(result.skip_reason or ""))
        result = result.data
    return Outcome(End.COMPLETED, result=encode_result(result))


def _settled(outcome: Outcome) -> Outcome:
    return replace(outcome, settled=True)


def _from_error(
    error: BaseException,
    job: Claimed,
    declaration: Declaration | None,
    context: JobContext | None,
    *,
    started: bool,
) -> Outcome:
    """Return the outcome that an exception stands for."""
    if context is not None and context.completed:
        # The job was done before this: nothing can take it back, so it is only worth a line.
        _log_late(error, job)
        return Outcome(End.COMPLETED, settled=True)
    if isinstance(error, Skip):
        return Outcome(End.SKIPPED, reason=clean_text(error.reason))
    if isinstance(error, Snooze):
        return _snoozed(error, job, declaration, context)
    if type(error) is JobInterrupted:
        return Outcome(End.RELEASED, reason="Released during shutdown")
    summary = summarize(
        error,
        job_type=job.job_type,
        with_message=settings.DEBUG or get_conf().ERROR_DETAIL == "message",
    )
    end = _end_of(error, declaration)
    hook = declaration is not None and declaration.failed is not None
    delay = 0.0
    if end in (End.FAILED, End.TIMED_OUT):
        delay = delay_after(error, context, declaration, job.attempt)
    return Outcome(end, error=summary, delay=delay, bury=hook and started)


def _end_of(error: BaseException, declaration: Declaration | None) -> End:
    if isinstance(error, JobTimeout):
        return End.TIMED_OUT
    if isinstance(error, JobCancelled):
        return End.CANCELLED
    permanent = (RejectedJob, Reject, *(declaration.permanent if declaration else ()))
    return End.REJECTED if isinstance(error, permanent) else End.FAILED


def _snoozed(
    error: Snooze, job: Claimed, declaration: Declaration | None, context: JobContext | None
) -> Outcome:
    try:
        delay = as_seconds(error.delay)
    except ValueError as problem:
        return _from_error(JobError(f"Snooze: {problem}"), job, declaration, context, started=True)
    return Outcome(End.SNOOZED, delay=delay, reason=clean_text(error.reason))


def _log_late(error: BaseException, job: Claimed) -> None:
    log_event(
        "handler_failed_after_completion",
        level=logging.ERROR,
        job_id=job.job_id,
        job_type=job.job_type,
        error=type(error).__qualname__,
    )
