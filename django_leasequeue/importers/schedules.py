"""Another app's periodic tasks as rows of our Schedule table, disabled until somebody looks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django_leasequeue.codec import encode
from django_leasequeue.conf import get_conf
from django_leasequeue.exceptions import RejectedJob, ScheduleError
from django_leasequeue.grid import Rule
from django_leasequeue.importers.base import Importer, Line, Unmappable, Wish
from django_leasequeue.models import Schedule

__all__ = ["ScheduleImporter", "Timing", "checked_cron", "payload_for"]


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule ticks: by a cron expression in a zone, or every so many seconds.

    Raises Unmappable for what no schedule here could tick by.
    """

    cron: str = ""
    every: float | None = None
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        try:
            Rule.of(cron=self.cron or None, every=self.every, timezone=self.timezone)
        except ScheduleError as error:
            raise Unmappable(f"no schedule here ticks by that: {error}") from None


class ScheduleImporter(Importer):
    """What both sources of schedules have in common."""

    def count(self) -> int:
        return int(self.model.objects.using(self.source).count())

    def rows(self) -> Iterator[Any]:
        yield from self.model.objects.using(self.source).order_by("pk").iterator(500)

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
        line = Line(name, "imported", declared.name, tuple(self.lost(row)))
        schedules = Schedule.objects.using(self.wish.database)
        if schedules.filter(name=name).exists():
            return Line(name, "present", declared.name)
        if not self.wish.dry_run:
            schedules.get_or_create(
                name=name,
                defaults={
                    "job_type": declared.name,
                    "payload": payload,
                    "payload_version": declared.version,
                    "queue_name": self.queue(row) or declared.queue,
                    "priority": declared.priority,
                    "cron": timing.cron,
                    "every": timing.every,
                    "timezone": timing.timezone,
                    "enabled": self.wish.enable and self.is_enabled(row),
                },
            )
        return line


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
