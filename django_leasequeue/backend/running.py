"""The running attempt of a task as django.tasks shows it: a result, and a context."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from django_leasequeue.backend.compat import TaskContext, TaskResult, TaskResultStatus
from django_leasequeue.backend.restored import restored_task
from django_leasequeue.backend.results import (
    attempts_of,
    fill_in,
    new_result,
    note_attempts,
    note_start,
    shown_time,
)
from django_leasequeue.runtime.context import JobContext

__all__ = ["LeaseTaskContext", "running_result", "task_context"]

_results: WeakKeyDictionary[JobContext, TaskResult] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTaskContext(TaskContext):  # type: ignore[misc]  # frozen, says Django
    """What a task with `takes_context=True` gets; `job` is the queue's own context of it."""

    job: JobContext


def task_context(context: JobContext) -> LeaseTaskContext:
    """Return the context for a task's function."""
    return LeaseTaskContext(task_result=running_result(context), job=context)


def running_result(context: JobContext) -> TaskResult:
    """Return the result of an attempt: one object for its function and for all its signals.

    Earlier attempts are read from the database; a first one costs no statement.
    """
    if context not in _results:
        _results[context] = _running(context)
    return _results[context]


def _running(context: JobContext) -> TaskResult:
    task = restored_task(
        context.job_type, context.payload, queue=context.queue, priority=context.priority
    )
    result = new_result(task, context.job_id, context.payload, TaskResultStatus.RUNNING)
    if context.claims > 1:
        earlier = attempts_of(context.using, context.job_id)
        note_attempts(result, [one for one in earlier if one.number < context.claims])
    note_start(result, context.worker, datetime.now(UTC))
    fill_in(result, enqueued_at=shown_time(context.enqueued_at))
    return result
