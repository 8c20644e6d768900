"""django-tasks-db: its waiting tasks as jobs, each under a key of its own row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db import connections, transaction
from django.db.models.functions import Now
from django.utils import timezone

from django_leasequeue.core.enqueue import enqueue
from django_leasequeue.exceptions import EnqueueError, LeaseQueueError
from django_leasequeue.importers.base import Importer, Line, Unmappable
from django_leasequeue.importers.schedules import payload_for
from django_leasequeue.models import Job

__all__ = ["TasksDb"]

_PAGE = 500
#: What the source stores for "at once".
_AT_ONCE_YEAR = 9999
#: A row over there that needs no worker any more; its class must be one that can be imported.
_TAKEN_OVER = {
    "status": "FAILED",
    "finished_at": Now(),
    "exception_class_path": f"{LeaseQueueError.__module__}.{LeaseQueueError.__qualname__}",
}


class TasksDb(Importer):
    """Tasks that are READY; running and finished ones are none of ours."""

    name = "django-tasks-db"
    app_label = "django_tasks_database"
    model_name = "DBTaskResult"
    marks = True

    def count(self) -> int:
        return int(self._waiting().count())

    def rows(self) -> Iterator[Any]:
        last = None
        while True:
            page = self._waiting().order_by("pk")
            found = list(page.filter(pk__gt=last)[:_PAGE] if last else page[:_PAGE])
            yield from found
            if len(found) < _PAGE:
                return
            last = found[-1].pk

    def label(self, row: Any) -> str:
        return f"{row.task_path} {row.pk}"

    def take(self, row: Any) -> Line:
        declared, payload = self._call(row)
        if self.wish.dry_run:
            return Line(self.label(row), "imported", declared.name)
        if not self.wish.mark:
            return self._line(row, self._enqueue(row, declared, payload))
        with transaction.atomic(using=self.source):
            if not self._lock(row):
                raise Unmappable("a worker over there has it by now")
            job = self._enqueue(row, declared, payload)
            self._mark(row, job)
        return self._line(row, job)

    def _waiting(self) -> Any:
        return self.model.objects.using(self.source).filter(status="READY")

    def _call(self, row: Any) -> tuple[Any, dict[str, Any]]:
        call = row.args_kwargs
        return payload_for(self.wish, row.task_path, call["args"], call["kwargs"])

    def _enqueue(self, row: Any, declared: Any, payload: dict[str, Any]) -> Job:
        try:
            return enqueue(
                declared.name,
                payload,
                key=f"{self.name}:{row.pk}",
                key_until="forever",
                queue=row.queue_name,
                priority=row.priority,
                run_after=_moment(row),
                using=self.wish.database,
            )
        except (EnqueueError, LeaseQueueError) as error:
            raise Unmappable(str(error)) from None

    def _line(self, row: Any, job: Job) -> Line:
        return Line(self.label(row), "imported" if job.created else "present", f"job #{job.pk}")

    def _lock(self, row: Any) -> bool:
        skip = connections[self.source].features.has_select_for_update_skip_locked
        return bool(self._waiting().select_for_update(skip_locked=skip).filter(pk=row.pk))

    def _mark(self, row: Any, job: Job) -> None:
        """Close the row in the same transaction, so that no worker over there runs it, too."""
        text = f"Imported into django-leasequeue as job {job.pk}"
        self._waiting().filter(pk=row.pk).update(**_TAKEN_OVER, traceback=text)


def _moment(row: Any) -> datetime:
    """Return when it may run; what may run at once keeps its place by when it was enqueued."""
    moment: datetime = row.run_after
    if moment.year >= _AT_ONCE_YEAR:
        moment = row.enqueued_at
    aware = moment if moment.tzinfo else timezone.make_aware(moment)
    return aware.astimezone(UTC)
