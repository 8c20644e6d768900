"""django-q2: its Schedule rows; what repeats by the calendar becomes a cron expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from django_leasequeue.importers.base import Line, Unmappable
from django_leasequeue.importers.schedules import ScheduleImporter, Timing, checked_cron

__all__ = ["DjangoQ2"]

_WEEKDAYS = 7
_DAYS_OF_EVERY_MONTH = 28
#: Months from one run to the next.
_MONTHS = {"M": 1, "BM": 2, "Q": 3, "Y": 12}


class DjangoQ2(ScheduleImporter):
    """Schedules; those that run once, for some more times or every other week are left."""

    name = "django-q2"
    app_label = "django_q"
    model_name = "Schedule"

    def label(self, row: Any) -> str:
        return str(row.name or f"{row.func} #{row.pk}")

    def timing(self, row: Any) -> Timing:
        return replace(self._timing(row), catch_up=_catch_up(row.cluster))

    def _timing(self, row: Any) -> Timing:
        if row.schedule_type == "O":
            raise Unmappable("it runs once: enqueue that job with run_after")
        if row.repeats >= 0:
            raise Unmappable("it ends after some more runs: disable a schedule when it is enough")
        if row.intended_date_kwarg:
            raise Unmappable(
                "it tells its function the intended date: take context.tick_at there, and add the "
                "schedule by hand"
            )
        if row.schedule_type == "I":
            return Timing(every=(row.minutes or 1) * 60.0)
        zone = timezone.get_default_timezone_name()
        if row.schedule_type == "C":
            return checked_cron(row.cron or "", zone)
        if row.next_run is None:
            raise Unmappable("it has no next run to tell its hour by")
        return checked_cron(_cron(row.schedule_type, _local(row.next_run)), zone)

    def take(self, row: Any) -> Line:
        if row.name and self._shares_its_name(row):
            raise Unmappable("another schedule over there has its name: rename one")
        return super().take(row)

    def _shares_its_name(self, row: Any) -> bool:
        # A server may find names alike that differ here: compared exactly it is in Python.
        others = self.source_rows().filter(name=row.name).exclude(pk=row.pk)
        return row.name in others.values_list("name", flat=True)

    def call(self, row: Any) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        try:
            args = ast.literal_eval(row.args) if row.args else ()
            kwargs = _keywords(row.kwargs) if row.kwargs else {}
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise Unmappable("its arguments are no plain Python values") from None
        kwargs.pop("q_options", None)
        return row.func, args if isinstance(args, tuple) else (args,), kwargs

    def queue(self, row: Any) -> str | None:
        return row.cluster or None

    def is_enabled(self, row: Any) -> bool:
        return row.next_run is not None

    def lost(self, row: Any) -> Iterator[str]:
        if row.hook:
            yield "hook"
        if "q_options" in (row.kwargs or ""):
            yield "q_options"


def _catch_up(cluster: str | None) -> str:
    """Return what the cluster does about runs that it has missed; as configured, all of them."""
    conf: dict[str, Any] = getattr(settings, "Q_CLUSTER", {})
    own = conf.get("ALT_CLUSTERS", {}).get(cluster, {})
    return "all" if {**conf, **own}.get("catch_up", True) else "latest"


def _local(moment: datetime) -> datetime:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(timezone.get_default_timezone())


def _cron(kind: str, first: datetime) -> str:
    """Return the expression of a schedule of this kind, one of whose runs is at `first`."""
    if kind == "H":
        return f"{first.minute} * * * *"
    hour = f"{first.minute} {first.hour}"
    if kind == "D":
        return f"{hour} * * *"
    if kind == "W":
        return f"{hour} * * {first.isoweekday() % _WEEKDAYS}"
    if kind == "BW":
        raise Unmappable(
            "it runs every other week: make it weekly, and skip one by context.tick_at"
        )
    if kind not in _MONTHS:
        raise Unmappable("its kind is not known")
    if first.day > _DAYS_OF_EVERY_MONTH:
        raise Unmappable("not every month has its day: give it a cron expression")
    step = _MONTHS[kind]
    months = sorted((first.month - 1 + number * step) % 12 + 1 for number in range(12 // step))
    return f"{hour} {first.day} {'*' if step == 1 else ','.join(map(str, months))} *"


def _keywords(text: str) -> dict[str, Any]:
    """Read keyword arguments as django-q2 does: a dictionary, or as in a call."""
    try:
        found = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        call = ast.parse(f"f({text})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError from None
        found = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError
    return found
