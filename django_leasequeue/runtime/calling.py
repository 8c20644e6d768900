"""Calling project code: a handler or a hook, inside the middleware, and what its return means."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from asgiref.sync import async_to_sync

from django_leasequeue.codec import clean_text
from django_leasequeue.exceptions import JobError
from django_leasequeue.middleware.chain import get_chain
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.registry import Declaration
from django_leasequeue.results import JobResult
from django_leasequeue.runtime.context import JobContext, encode_result
from django_leasequeue.runtime.interrupts import Interrupts

__all__ = ["call_failed", "call_handler"]


def call_failed(
    hook: Callable[..., Any], context: JobContext, error: JobError, interrupts: Interrupts
) -> None:
    """Run a `failed` hook, which may be a coroutine function, inside `around_failed`."""
    get_chain().run_failed(context, lambda: _finished(hook(context, error), interrupts))


def call_handler(
    declaration: Declaration | None,
    context: JobContext,
    arguments: dict[str, Any],
    interrupts: Interrupts,
) -> Outcome:
    """Run the handler inside the middleware's `around` and return how it ended.

    What it raises goes through. The result is what the outermost middleware returns; that of an
    `atomic` handler is committed before middleware sees it.
    """
    assert declaration is not None  # noqa: S101  (_accept has refused a job without one)

    def call() -> Any:
        if not declaration.atomic:
            return _handle(declaration, context, arguments, interrupts)
        return _handle_atomic(declaration, context, arguments, interrupts)

    return _outcome_of(get_chain().run(context, call), context)


def _handle_atomic(
    declaration: Declaration,
    context: JobContext,
    arguments: dict[str, Any],
    interrupts: Interrupts,
) -> Any:
    """Run the handler in the transaction that completes the job."""
    result: list[Any] = []
    with context.transaction(lambda: _outcome_of(result[0], context)):
        result.append(_handle(declaration, context, arguments, interrupts))
    return result[0]


def _handle(
    declaration: Declaration,
    context: JobContext,
    arguments: dict[str, Any],
    interrupts: Interrupts,
) -> Any:
    first = (context,) if declaration.takes_context else ()
    return _finished(declaration.begin()(*first, **arguments), interrupts)


def _finished(result: Any, interrupts: Interrupts) -> Any:
    """Return the result of a call, which for a coroutine function is a coroutine still to run."""
    if not inspect.iscoroutine(result):
        return result
    # The loop runs in a second thread; what the coroutine calls through sync_to_async runs in
    # this one, on this thread's connections.
    return async_to_sync(_awaited)(result, interrupts)


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
    if context.settled is not None:
        return context.settled
    if isinstance(result, JobResult):
        if result.is_skipped:
            return Outcome(End.SKIPPED, reason=clean_text(result.skip_reason or ""))
        result = result.data
    return Outcome(End.COMPLETED, result=encode_result(result))
