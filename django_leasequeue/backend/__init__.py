"""The backend of django.tasks: TASKS names it as "django_leasequeue.backend.LeaseQueueBackend"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.checks import CheckMessage
from django.utils import timezone

from django_leasequeue.backend.checks import check_backend
from django_leasequeue.backend.compat import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultStatus,
    normalize_json,
    task_backends,
    task_enqueued,
)
from django_leasequeue.backend.policies import policy
from django_leasequeue.backend.receivers import connect
from django_leasequeue.backend.results import fill_in, find_result, new_result
from django_leasequeue.backend.tasks import LeaseTask, TaskDeclaration, declaration_of
from django_leasequeue.conf import get_conf
from django_leasequeue.core.enqueue import enqueue, enqueue_many
from django_leasequeue.exceptions import KeyTaken
from django_leasequeue.models import Job

__all__ = ["LeaseQueueBackend", "policy"]


class LeaseQueueBackend(BaseTaskBackend):
    """Enqueues tasks as jobs; `manage.py runworker` runs them beside the jobs of `@job`.

    OPTIONS: `DATABASE` (alias, default the setting's), `MODULES` (dotted names of modules with
    tasks that are not called `tasks`, imported at start-up).
    """

    task_class = LeaseTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        connect()

    @property
    def using(self) -> str:
        """Alias of the database that the jobs go to."""
        return str(self.options.get("DATABASE") or get_conf().DATABASE)

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Enqueue a job in the caller's transaction and return its result, which is READY.

        A key that is taken returns the result of the job that has it. Raises InvalidTask, KeyTaken
        when that job is no task, EnqueueError for arguments that do not fit the function or cannot
        be stored, and TypeError and ValueError as django.tasks does for what is no JSON; nothing is
        written then.
        """
        self.validate_task(task)
        declaration, payload, options = self._job_of(task, args, kwargs)
        job = enqueue(declaration, payload, using=self.using, **options)
        return self._enqueued(task, payload, job)

    def enqueue_many(
        self, calls: Iterable[tuple[Task, Sequence[Any], Mapping[str, Any]]]
    ) -> list[TaskResult]:
        """Enqueue `(task, args, kwargs)` tuples in few statements: all of them, or none.

        Returns the results in order. Raises as `enqueue` does.
        """
        made = [(task, *self._job_of(task, args, kwargs)) for task, args, kwargs in calls]
        for task, *_rest in made:
            self.validate_task(task)
        jobs = enqueue_many([job for _task, *job in made], using=self.using)  # type: ignore[misc]
        return [
            self._enqueued(task, payload, job)
            for (task, _, payload, _o), job in zip(made, jobs, strict=True)
        ]

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result with this id as it is now; any string is a legal id to ask for.

        Raises TaskResultDoesNotExist when no task has it.
        """
        result = find_result(self.using, result_id)
        if result is None:
            raise TaskResultDoesNotExist(str(result_id))
        return result

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return what is wrong with this backend's settings (leasequeue.E017 to E019)."""
        if task_backends[self.alias] is not self:
            return []  # the check of the backport, beside Django's own: it was said already
        return check_backend(self.alias, self.queues, self.options)

    def _job_of(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[TaskDeclaration, dict[str, Any], Any]:
        declaration = declaration_of(task)
        payload = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        if self.alias != "default":
            payload["backend"] = self.alias
        if task.run_after is not None:
            payload["run_after"] = task.run_after.isoformat()
        options = {
            "queue": task.queue_name,
            "priority": int(task.priority),
            "run_after": task.run_after,
            "max_attempts": getattr(task, "max_attempts", None),
            "timeout": getattr(task, "timeout", None) or declaration.timeout,
            "key": getattr(task, "key", None),
        }
        return declaration, payload, options

    def _enqueued(self, task: Task, payload: dict[str, Any], job: Job) -> TaskResult:
        if not job.created and (found := self._holder(job)) is not None:
            return found
        result = new_result(task, job.pk, payload, TaskResultStatus.READY)
        # By this host's clock, until it is refreshed: asking would be one more statement.
        fill_in(result, backend=self.alias, enqueued_at=timezone.now())
        if job.created:
            task_enqueued.send(type(self), task_result=result)
        return result

    def _holder(self, job: Job) -> TaskResult | None:
        """Return the result of the job that has a key; None when this transaction cannot see it.

        A snapshot shows no job that was committed after it was taken. Raises KeyTaken.
        """
        found = find_result(self.using, job.pk)
        if found is None and Job.objects.using(self.using).filter(pk=job.pk).exists():
            raise KeyTaken(
                f"the key of this task belongs to job {job.pk}, which is no task", job.pk
            )
        return found
