"""django-celery-beat: its PeriodicTask rows with a crontab or an interval."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django_leasequeue.importers.base import Unmappable
from django_leasequeue.importers.schedules import ScheduleImporter, Timing, checked_cron

__all__ = ["CeleryBeat"]

_SECONDS = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}
_MICROSECONDS = 1e-6
#: Beat adds it by itself, for results that are Celery's.
_OF_CELERY_ITSELF = "celery.backend_cleanup"


class CeleryBeat(ScheduleImporter):
    """Periodic tasks; solar and clocked ones, and those that run once or end, are left."""

    name = "celery-beat"
    app_label = "django_celery_beat"
    model_name = "PeriodicTask"

    def source_rows(self) -> Any:
        rows = super().source_rows().select_related("crontab", "interval")
        return rows.exclude(task=_OF_CELERY_ITSELF)

    def label(self, row: Any) -> str:
        return str(row.name)

    def timing(self, row: Any) -> Timing:
        if row.solar_id is not None:
            raise Unmappable("it follows the sun: give it a cron expression")
        if row.clocked_id is not None or row.one_off:
            raise Unmappable("it runs once: enqueue that job with run_after")
        if row.expires is not None:
            raise Unmappable("it ends at a time: clear its expiry, and disable the schedule then")
        if row.interval is not None:
            seconds = _SECONDS.get(row.interval.period, _MICROSECONDS)
            return Timing(every=row.interval.every * seconds)
        if row.crontab is None:
            raise Unmappable("it has neither a crontab nor an interval")
        return _crontab(row.crontab)

    def call(self, row: Any) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        try:
            args, kwargs = json.loads(row.args or "[]"), json.loads(row.kwargs or "{}")
        except ValueError:
            raise Unmappable("its arguments are no JSON") from None
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise Unmappable("its arguments are no list and no object")
        return row.task, args, kwargs

    def queue(self, row: Any) -> str | None:
        return row.queue or None

    def is_enabled(self, row: Any) -> bool:
        return bool(row.enabled)

    def lost(self, row: Any) -> Iterator[str]:
        if row.priority is not None:
            yield "priority: brokers disagree about which is first; the job type's is taken"
        if row.expire_seconds is not None:
            yield "expire_seconds"
        if row.start_time is not None:
            yield "start_time"
        if row.exchange or row.routing_key or (row.headers or "{}") != "{}":
            yield "exchange, routing key or headers"


def _crontab(crontab: Any) -> Timing:
    # Celery wants both days to be right; cron, and so ours, is content with either.
    if crontab.day_of_month != "*" and crontab.day_of_week != "*":
        raise Unmappable("it asks for a day of the month that is a certain weekday, too")
    fields = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    expression = " ".join(str(getattr(crontab, name)).replace(" ", "") for name in fields)
    return checked_cron(expression, str(crontab.timezone))
