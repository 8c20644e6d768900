"""The executor: one attempt as a pipeline of steps, from a claimed job to an outcome as a value.

Whatever a handler raises, exits and interrupts included, becomes an outcome.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from asgiref.sync import async_to_sync
from django.conf import settings

from django_leasequeue.codec import clean_text, decode_payload, summarize
from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import (
    JobCancelled,
    JobCrashed,
    JobError,
    JobExpired,
    JobInterrupted,
    JobTimeout,
    LeaseLost,
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
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.context import JobContext, encode_result
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import (
    fresh_context,
    freshen_connections,
    keep_signals,
    left_open,
)

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
    _ended: float = 0.0

    def execute(self, job: Claimed, hold: Hold, limit: float | None = None) -> Outcome:
        """Run one attempt, which may take `limit` seconds, and return how it ended.

        Raises nothing. `settled` outcomes are committed already. Connections that the handler left
        unclean are discarded; a handler that left a transaction open has failed, for it was
        rolled back.
        """
        declaration = registry.get(job.job_type)
        context: JobContext | None = None
        started = False
        self._prepare()
        try:
            payload = _accept(job, declaration)
            context = self._context(job, payload, hold, limit)
            context.ensure_lease()  # the process may have stood still since the claim
            started = True
            with keep_signals(), self.interrupts.window(job.lease):
                outcome = fresh_context().run(_call, declaration, context, payload, self.interrupts)
        except BaseException as error:  # noqa: BLE001  (SystemExit is a handler's failure, too)
            self.interrupts.close()
            outcome = _from_error(error, job, declaration, context, started=started)
        outcome = self._close(outcome, job, declaration, context)
        self._ended = time.monotonic()
        return outcome

    def bury(self, job: Claimed, hold: Hold, limit: float | None, last: LastEnd) -> Outcome:
        """Run the `failed` hook of a dead job; a hook that did not end well is a FAILED outcome.

        A malformed payload has no hook: no handler could have run with it. Raises nothing.
        """
        declaration = registry.get(job.job_type)
        if declaration is None or declaration.failed is None:
            return Outcome(End.COMPLETED)
        try:
            payload = decode_payload(job.payload)
        except RejectedJob:
            return Outcome(End.COMPLETED)
        context = self._context(job, payload, hold, limit)
        error = _LAST_ERRORS.get(last.end, JobError)(last.text)
        self._prepare()
        outcome = Outcome(End.COMPLETED)
        try:
            with keep_signals(), self.interrupts.window(job.lease):
                fresh_context().run(declaration.failed, context, error)
        except BaseException as failure:  # noqa: BLE001  (nor may a hook's exit end the process)
            self.interrupts.close()
            outcome = Outcome(End.FAILED, error=summarize(failure, job_type=job.job_type))
        left_open(irregular=outcome.end is not End.COMPLETED)
        self._ended = time.monotonic()
        return outcome

    def _prepare(self) -> None:
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


def _call(
    declaration: Declaration | None,
    context: JobContext,
    payload: dict[str, Any],
    interrupts: Interrupts,
) -> Outcome:
    assert declaration is not None  # noqa: S101  (_accept has refused a job without one)
    if not declaration.atomic:
        return _outcome_of(_handle(declaration, context, payload, interrupts), context)
    ended: list[Outcome] = []
    result: list[Any] = []

    def ending() -> Outcome:
        ended.append(_outcome_of(result[0], context))
        return ended[0]

    with context.transaction(ending):
        result.append(_handle(declaration, context, payload, interrupts))
    return _settled(ended[0])


def _handle(
    declaration: Declaration,
    context: JobContext,
    payload: dict[str, Any],
    interrupts: Interrupts,
) -> Any:
    arguments = (context,) if declaration.takes_context else ()
    if inspect.iscoroutinefunction(declaration.handler):
        # The loop runs in a second thread; what the coroutine calls through sync_to_async runs in
        # this one, on this thread's connections.
        return async_to_sync(_awaited)(declaration.handler(*arguments, **payload), interrupts)
    return declaration.handler(*arguments, **payload)


async def _awaited(coroutine: Coroutine[Any, Any, Any], interrupts: Interrupts) -> Any:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  (a coroutine that runs is in a task)
    try:
        with interrupts.cancelling(task):
            return await coroutine
    except asyncio.CancelledError:
        interrupt = interrupts.take()
        if interrupt is not None:
            raise interrupt from None
        raise


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
    if type(error) is LeaseLost:  # if it still stands, another worker may have it at once
        return Outcome(End.RELEASED, error=summary, started=started)
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
