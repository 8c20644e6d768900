"""The grid of a schedule: the moments at which it ticks, decided by its rule alone.

No worker, start or edit moves them: an interval's ticks are its multiples since 1970 in UTC, a cron
expression's are wall times of its zone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django_leasequeue.cron import cron_after, normal_cron
from django_leasequeue.exceptions import ScheduleError

__all__ = ["CATCH_UPS", "LONGEST", "SHORTEST", "Rule", "checked_catch_up"]

#: Bounds of an interval, in seconds.
SHORTEST = 1.0
LONGEST = 366 * 86_400.0
CATCH_UPS = ("latest", "all", "none")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Earlier rules of clock changes are none of a schedule's.
_FIRST = datetime(2025, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def checked_catch_up(value: Any) -> str:
    """Return what is done about missed ticks; raise ScheduleError for an unknown word."""
    if value not in CATCH_UPS:
        raise ScheduleError(f"catch_up is one of {', '.join(map(repr, CATCH_UPS))}, not {value!r}")
    return str(value)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a schedule ticks: a cron expression in a zone, or seconds from one to the next."""

    cron: str
    every: float | None
    timezone: str

    @classmethod
    def of(cls, *, cron: Any = None, every: Any = None, timezone: Any = "UTC") -> Rule:
        """Return the checked rule; `every` is seconds or a timedelta.

        Raises ScheduleError for what is no rule, or one that would never tick.
        """
        if (cron in (None, "")) == (every is None):
            raise ScheduleError("a schedule has either cron or every")
        if not isinstance(timezone, str) or len(timezone) > 64:
            raise ScheduleError("timezone is the name of one, such as 'Europe/Belgrade'")
        _zone(timezone)
        if every is not None:
            return cls("", _seconds(every), timezone)
        if not isinstance(cron, str):
            raise ScheduleError(f"cron is a text, not a {type(cron).__name__}")
        rule = cls(normal_cron(cron), None, timezone)
        rule.after(_FIRST)  # one that only names times which the clocks skip never ticks
        return rule

    def after(self, moment: datetime) -> datetime:
        """Return the first tick after an aware moment, in UTC.

        Raises ScheduleError where the calendar ends: no clock but a wrong one comes there.
        """
        try:
            if self.every is None:
                return cron_after(self.cron, _zone(self.timezone), moment)
            step = timedelta(seconds=self.every)
            return _EPOCH + ((moment - _EPOCH) // step + 1) * step
        except OverflowError:
            raise ScheduleError(f"there is no tick after {moment:%Y-%m-%d}") from None

    def from_(self, moment: datetime) -> datetime:
        """Return the first tick at an aware moment or after it, in UTC.

        Raises ScheduleError where the calendar begins or ends.
        """
        try:
            before = moment - _MICROSECOND
        except OverflowError:
            raise ScheduleError(f"there is no time before {moment:%Y-%m-%d}") from None
        return self.after(before)

    def latest(self, first: datetime, now: datetime) -> datetime:
        """Return the last tick up to `now`, given one of them; takes the same time for any span."""
        low, high = first - _MICROSECOND, now
        while high - low > timedelta(seconds=SHORTEST / 2):
            middle = low + (high - low) / 2
            low, high = (middle, high) if self.after(middle) <= now else (low, middle)
        return self.after(low)

    def __str__(self) -> str:
        return f"{self.cron} ({self.timezone})" if self.cron else f"every {self.every:g} s"


def _seconds(every: Any) -> float:
    if isinstance(every, timedelta):
        every = every.total_seconds()
    if type(every) not in (int, float) or not math.isfinite(every):
        raise ScheduleError("every is a number of seconds or a timedelta")
    if not SHORTEST <= every <= LONGEST:
        raise ScheduleError(f"every is from {SHORTEST:g} s to {LONGEST:g} s, not {every:g}")
    return float(every)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ScheduleError(f"timezone: there is no time zone {name!r} here") from None
