"""Another app's periodic tasks as rows of our Schedule table, disabled until somebody looks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django_leasequeue.codec import encode
from django_leasequeue.conf import get_conf
from django_leasequeue.core.schedule_columns import checked_schedule, checked_text
from django_leasequeue.core.schedules import add_schedule
from django_leasequeue.exceptions import RejectedJob, ScheduleError
from django_leasequeue.grid import Rule
from django_leasequeue.importers.base import Importer, Line, Unmappable, Wish
from django_leasequeue.models import Schedule

__all__ = ["ScheduleImporter", "Timing", "checked_cron", "payload_for"]


_HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule ticks: by a cron expression in a zone, or every so many seconds.

    Raises Unmappable for what no schedule here could tick by.
    """

    cron: str = ""
    every: float | None = None
    timezone: str = "UTC"
    catch_up: str = "latest"

    def __post_init__(self) -> None:
        try:
            Rule.of(cron=self.cron or None, every=self.every, timezone=self.timezone)
        except ScheduleError as error:
            raise Unmappable(f"no schedule here ticks by that: {error}") from None

    def told(self) -> Iterator[str]:
        """Yield what is other than over there, in words."""
        if self.every is not None and self.every >= _HOUR:
            yield "it ticks at multiples since 1970 in UTC, not from a last run: cron has hours"


class ScheduleImporter(Importer):
    """What both sources of schedules have in common."""

    def count(self) -> int:
        return int(self.source_rows().count())

    def rows(self) -> Iterator[Any]:
        yield from self.source_rows().order_by("pk").iterator(500)

    def source_rows(self) -> Any:
        """Return the rows to go through, as a queryset in any order."""
        return self.model.objects.using(self.source)

    @abstractmethod
    def timing(self, row: Any) -> Timing:
        """Return when it ticks. Raises Unmappable."""

    @abstractmethod
    def call(self, row: Any) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        """Return the function's name and its arguments. Raises Unmappable."""

    @abstractmethod
    def queue(self, row: Any) -> str | None:
        """Return the queue that the row names, None for that of the job type."""

    @abstractmethod
    def is_enabled(self, row: Any) -> bool:
        """Tell whether it ticks over there."""

    @abstractmethod
    def lost(self, row: Any) -> Iterator[str]:
        """Yield what of the row has no counterpart, in words."""

    def take(self, row: Any) -> Line:
        timing = self.timing(row)
        function, args, kwargs = self.call(row)
        declared, payload = payload_for(self.wish, function, args, kwargs)
        name = self.label(row)
        if self._is_present(name, declared.name):
            return Line(name, "present", declared.name)
        columns = {**asdict(timing), "job_type": declared.name, "payload": payload}
        columns |= {"queue": self.queue(row), "priority": None, "key": ""}
        try:
            self._add(checked_text("name", name), columns, enabled=self.is_enabled(row))
        except ScheduleError as error:
            raise Unmappable(str(error)) from None
        return Line(name, "imported", declared.name, (*self.lost(row), *timing.told()))

    def _is_present(self, name: str, job_type: str) -> bool:
        """Tell whether an earlier import made it. Raises Unmappable for one of another job type."""
        found = Schedule.objects.using(self.wish.database).filter(name=name)
        known = found.values_list("job_type", flat=True).first()
        if known not in (None, job_type):
            raise Unmappable(f"a schedule of its name is here, of job type {known}: rename one")
        return known is not None

    def _add(self, name: str, columns: dict[str, Any], *, enabled: bool) -> None:
        if self.wish.dry_run:
            checked_schedule(columns)
        else:
            enabled = enabled and self.wish.enable
            add_schedule(name, **columns, enabled=enabled, using=self.wish.database)


def payload_for(
    wish: Wish, function: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the job type for a call, and the call's arguments as its payload.

    Raises Unmappable when there is none, or the arguments do not fit it.
    """
    declared = wish.declared(function)
    try:
        payload = declared.as_json(declared.payload_from(tuple(args), dict(kwargs)))
        encode(payload, what="payload", limit=get_conf().MAX_PAYLOAD_BYTES)
        declared.check_payload(payload)
    except (TypeError, ValueError, RejectedJob) as error:
        raise Unmappable(f"its arguments do not fit: {error}") from None
    return declared, payload


def checked_cron(expression: str, zone: str) -> Timing:
    """Return a cron expression that is understood here as it stands. Raises Unmappable."""
    return Timing(cron=expression, timezone=zone)
