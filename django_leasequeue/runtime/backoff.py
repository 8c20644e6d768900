"""How long a failed attempt waits for the next, whatever the project's own backoff does."""

from __future__ import annotations

import logging
from typing import Any

from django_leasequeue.conf import get_conf
from django_leasequeue.events import log_event
from django_leasequeue.exceptions import Retry
from django_leasequeue.registry import Declaration
from django_leasequeue.retry import MAX_DELAY, Backoff, Exponential, Fixed, Linear, as_seconds

__all__ = ["delay_after", "pure_delay_after"]


def delay_after(
    error: BaseException, context: Any, declaration: Declaration | None, attempt: int
) -> float:
    """Return seconds until the next attempt; never raises.

    `Retry(delay=…)` wins, then the job type's backoff, then the setting. A backoff that raises or
    returns what is no delay, an overflow included, is logged, and the shipped default stands in
    for it.
    """
    try:
        if isinstance(error, Retry) and error.delay is not None:
            return _in_sight(error.delay)
        chosen = (declaration and declaration.backoff) or get_conf().BACKOFF
        delay = _ask(chosen, error, context, attempt)
        if delay is None:
            delay = _ask(get_conf().BACKOFF, error, context, attempt)
        return Exponential().delay_for(attempt) if delay is None else _in_sight(delay)
    except BaseException as failure:  # noqa: BLE001  (project code must not break the failure path)
        log_event(
            "backoff_failed",
            level=logging.ERROR,
            job_type=declaration.name if declaration else None,
            error=type(failure).__qualname__,
        )
        return Exponential().delay_for(attempt)


def pure_delay_after(declaration: Declaration | None, attempt: int) -> float:
    """Return seconds until the next attempt of a job whose handler cannot be asked any more.

    Runs no project code: a backoff that is not one of the shipped strategies is not asked, the
    default stands in for it.
    """
    chosen = (declaration and declaration.backoff) or get_conf().BACKOFF
    if isinstance(chosen, Exponential | Linear | Fixed):
        return chosen.delay_for(attempt)
    return Exponential().delay_for(attempt)


def _in_sight(delay: Any) -> float:
    """Return a delay in seconds; ValueError for what cannot be meant, as a sum that overflowed."""
    seconds = as_seconds(delay)
    if seconds >= MAX_DELAY:
        raise ValueError("the job would not be seen again")
    return seconds


def _ask(backoff: Backoff, error: BaseException, context: Any, attempt: int) -> Any:
    delay_for = getattr(backoff, "delay_for", None)
    if delay_for is not None:
        return delay_for(attempt)
    return backoff(error, context)  # type: ignore[operator]  # Strategy was handled above
