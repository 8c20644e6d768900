"""Results of tasks, read from the rows of their jobs and attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from django_leasequeue import exceptions
from django_leasequeue.backend.compat import Task, TaskError, TaskResult, TaskResultStatus
from django_leasequeue.backend.restored import is_task, restored_task
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End
from django_leasequeue.statuses import Status

__all__ = ["STATUSES", "attempts_of", "fill_in", "find_result", "new_result", "shown_time"]

#: What django.tasks calls a job's status; it has no words for the other ones.
STATUSES = {
    Status.READY: TaskResultStatus.READY,
    Status.PARKED: TaskResultStatus.READY,
    Status.RESERVED: TaskResultStatus.RUNNING,
    Status.DONE: TaskResultStatus.SUCCESSFUL,
    Status.DEAD: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}
_ERRORS = {End.FAILED, End.TIMED_OUT, End.REJECTED, End.CANCELLED, End.CRASHED, End.EXPIRED}
_OWN_CLASSES = {
    End.CRASHED: "JobCrashed",
    End.EXPIRED: "JobExpired",
    End.CANCELLED: "JobCancelled",
    End.TIMED_OUT: "JobTimeout",
    End.REJECTED: "RejectedJob",
}
_LARGEST_ID = 2**63 - 1


def shown_time(moment: datetime | None) -> datetime | None:
    """Return an aware time as the project has its times: naive under USE_TZ=False."""
    if moment is None or settings.USE_TZ:
        return moment
    return timezone.make_naive(moment)


def new_result(
    task: Task, job_id: int, payload: Mapping[str, Any], status: TaskResultStatus
) -> TaskResult:
    """Return a result that knows no times, errors and workers yet."""
    return TaskResult(
        task=task,
        id=str(job_id),
        status=status,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=task.backend,
        errors=[],
        worker_ids=[],
    )


def fill_in(result: TaskResult, **values: Any) -> None:
    """Set fields of a result, which is frozen for everybody else."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def attempts_of(using: str, job_id: int) -> list[JobAttempt]:
    """Return the attempts of a job that ended, in order."""
    return list(JobAttempt.objects.using(using).filter(job_id=job_id).order_by("number"))


def find_result(using: str, result_id: object) -> TaskResult | None:
    """Return the result with this id; None when no task has it. Any object may be asked for."""
    text = str(result_id)
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > _LARGEST_ID:
        return None
    # The write alias: a replica may not have the job yet.
    job = Job.objects.using(using).filter(pk=int(text)).first()
    if job is None or str(job.pk) != text or not is_task(job.job_type, job.payload):
        return None
    return _result_of(job, attempts_of(using, job.pk))


def _result_of(job: Job, attempts: list[JobAttempt]) -> TaskResult:
    task = restored_task(job.job_type, job.payload, queue=job.queue_name, priority=job.priority)
    status = STATUSES[Status(job.status)]
    result = new_result(task, job.pk, job.payload, status)
    note_attempts(result, attempts)
    if job.status == Status.RESERVED and job.claims > _last_number(attempts):
        note_start(result, job.leased_by, job.claimed_at)
    fill_in(
        result,
        enqueued_at=shown_time(job.created_at),
        finished_at=shown_time(job.finished_at) if result.is_finished else None,
        _return_value=job.result if status is TaskResultStatus.SUCCESSFUL else None,
    )
    return result


def _last_number(attempts: list[JobAttempt]) -> int:
    return attempts[-1].number if attempts else 0


def note_attempts(result: TaskResult, attempts: Iterable[JobAttempt]) -> None:
    """Add ended attempts to a result: workers, times and errors."""
    for attempt in attempts:
        note_start(result, attempt.worker, attempt.started_at)
        if attempt.outcome in _ERRORS:
            result.errors.append(_error_of(attempt))


def note_start(result: TaskResult, worker: str, started_at: datetime | None) -> None:
    """Add the start of an attempt to a result."""
    moment = shown_time(started_at)
    result.worker_ids.append(worker)
    fill_in(result, started_at=result.started_at or moment, last_attempted_at=moment)


def _error_of(attempt: JobAttempt) -> TaskError:
    path = attempt.error_class or _OWN_CLASSES.get(End(attempt.outcome), "JobError")
    if hasattr(exceptions, path):
        path = f"django_leasequeue.exceptions.{path}"
    elif "." not in path:
        path = f"builtins.{path}"
    frames = [frame for frame in attempt.frames if "/django_leasequeue/" not in frame]
    lines = ["Traceback (most recent call last):"] if frames else []
    lines += [f"  File {_place(frame)}" for frame in frames]
    return TaskError(
        exception_class_path=path, traceback="\n".join([*lines, attempt.error_text or path]) + "\n"
    )


def _place(frame: str) -> str:
    place, _, function = frame.partition(" ")
    file, _, line = place.rpartition(":")
    return f'"{file}", line {line}, in {function}'
