"""Endings: which outcome an error stands for that has ended an attempt."""

from __future__ import annotations

import logging

from django.conf import settings

from django_leasequeue.codec import clean_text, summarize
from django_leasequeue.conf import get_conf
from django_leasequeue.core.lease import Claimed
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import (
    JobCancelled,
    JobError,
    JobInterrupted,
    JobTimeout,
    LeaseLost,
    Reject,
    RejectedJob,
    Skip,
    Snooze,
)
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from django_leasequeue.registry import Declaration, registry
from django_leasequeue.retry import as_seconds
from django_leasequeue.runtime.backoff import delay_after, pure_delay_after
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.runtime.holds import Hold

__all__ = ["outcome_of_error", "undescribed"]


def undescribed(error: BaseException, job: Claimed, hold: Hold) -> Outcome:
    """Return the end of an attempt whose error, or whose cleaning up, raised in its turn."""
    if hold.completed:
        return Outcome(End.COMPLETED, settled=True)
    declaration = registry.get(job.job_type)
    log_event(
        "attempt_undescribed",
        level=logging.ERROR,
        job_id=job.job_id,
        job_type=job.job_type,
        error=type(error).__qualname__,
    )
    text = "UndescribedError: the attempt ended with an error that could not be described"
    return Outcome(
        End.FAILED,
        delay=pure_delay_after(declaration, job.attempt),
        error=ErrorSummary("UndescribedError", text),
        bury=declaration is not None and declaration.failed is not None,
    )


def outcome_of_error(
    error: BaseException,
    job: Claimed,
    declaration: Declaration | None,
    context: JobContext | None,
    *,
    started: bool,
) -> Outcome:
    """Return the outcome that an exception stands for."""
    if context is not None and context.settled is not None:
        # The job was done before this: nothing can take it back, so it is only worth a line.
        if not isinstance(error, JobInterrupted):
            _log_late(error, job)
        return context.settled
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
    malformed = end is End.REJECTED and not started
    return Outcome(end, error=summary, delay=delay, bury=hook and not malformed)


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
        return outcome_of_error(
            JobError(f"Snooze: {problem}"), job, declaration, context, started=True
        )
    return Outcome(End.SNOOZED, delay=delay, reason=clean_text(error.reason))


def _log_late(error: BaseException, job: Claimed) -> None:
    log_event(
        "handler_failed_after_completion",
        level=logging.ERROR,
        job_id=job.job_id,
        job_type=job.job_type,
        error=type(error).__qualname__,
    )
