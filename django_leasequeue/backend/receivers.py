"""The queue's signals, told as django.tasks tells them: task_started and task_finished."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.backend.compat import (
    TaskResult,
    TaskResultStatus,
    task_backends,
    task_finished,
    task_started,
)
from django_leasequeue.backend.restored import is_task
from django_leasequeue.backend.results import find_result
from django_leasequeue.backend.running import running_result
from django_leasequeue.conf import get_conf
from django_leasequeue.exceptions import JobCrashed, JobExpired, RejectedJob
from django_leasequeue.models import Job
from django_leasequeue.runtime.context import JobContext
from django_leasequeue.signals import job_dead, job_finished, job_started
from django_leasequeue.signing import verify
from django_leasequeue.statuses import Status

__all__ = ["connect"]


def connect() -> None:
    """Connect the receivers; once more changes nothing."""
    job_started.connect(_tell_started, sender=Job, dispatch_uid="leasequeue.task_started")
    job_finished.connect(_tell_finished, sender=Job, dispatch_uid="leasequeue.task_finished")
    job_dead.connect(_tell_dead, sender=Job, dispatch_uid="leasequeue.task_dead")


def _tell_started(sender: Any, context: JobContext, **kwargs: Any) -> None:
    if is_task(context.job_type, context.payload):
        result = running_result(context)
        task_started.send(sender=_sender(result), task_result=result)


def _tell_finished(
    sender: Any,
    context: JobContext,
    status: Status,
    error: BaseException | None,
    **kwargs: Any,
) -> None:
    """Tell of a job's last attempt; the ones before it are no end of a task."""
    if status in (Status.DONE, Status.DEAD, Status.CANCELLED):
        _finish(context, error)


def _tell_dead(sender: Any, context: JobContext, error: BaseException, **kwargs: Any) -> None:
    """Tell of a job that died without its handler's process: no attempt told of it."""
    if isinstance(error, JobCrashed | JobExpired):
        _finish(context, error)


def _finish(context: JobContext, error: BaseException | None) -> None:
    if not (is_task(context.job_type, context.payload) or _is_refused(context, error)):
        return
    result = find_result(context.using, context.job_id)
    if result is None or not result.is_finished:
        return  # no task; requeued meanwhile, or pruned
    if error is None or result.status is TaskResultStatus.SUCCESSFUL:
        task_finished.send(sender=_sender(result), task_result=result)
        return
    try:
        # Receivers, Django's own log line among them, find it in sys.exc_info().
        raise error  # noqa: TRY301
    except BaseException:  # noqa: BLE001  (whatever ended the attempt, exits included)
        task_finished.send(sender=_sender(result), task_result=result)


def _is_refused(context: JobContext, error: BaseException | None) -> bool:
    """Tell whether the job never ran, so that its context shows no payload: its row may have one.

    With a wrong signature nobody may have asked for it, and nothing is told of it.
    """
    if not isinstance(error, RejectedJob):
        return False
    if not get_conf().SIGNING_KEYS:
        return True
    job = Job.objects.using(context.using).filter(pk=context.job_id).first()
    return job is not None and verify(job)


def _sender(result: TaskResult) -> type:
    """Return the class of the result's backend; of ours when TASKS has no such alias any more."""
    from django_leasequeue.backend import LeaseQueueBackend

    try:
        return type(task_backends[result.backend])
    except ImproperlyConfigured:
        return LeaseQueueBackend
