"""Cron expressions: what is accepted of the grammar, and the next match in a time zone.

`cronsim` matches wall times. What a change of the clocks makes of them is decided here, by Debian's
rules, and so that the moments of a schedule are the same wherever a search begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from django_leasequeue.exceptions import ScheduleError

__all__ = ["cron_after", "normal_cron"]

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = {"minute": 60, "hour": 24, "day-of-month": 31, "month": 12, "day-of-week": 7}
_LONGEST = 200
_SECOND = timedelta(seconds=1)
#: No zone has set its clocks back by more; what is repeated lies within it.
_LONGEST_SHIFT = timedelta(hours=25)
#: How far ahead a match is looked for, as cronsim does.
_FURTHEST = timedelta(days=50 * 366)
_LAST_START = datetime(9900, 1, 1, tzinfo=UTC)
#: A day on which all zones keep their clocks, for a search in wall times.
_START = datetime(2000, 1, 1)  # noqa: DTZ001  (a wall time)


def normal_cron(text: str) -> str:
    """Return a cron expression as five fields with one space between them, macros replaced.

    Raises ScheduleError, saying what is wrong, for what is no expression or never matches.
    """
    cron = " ".join(text.split())
    if cron.startswith("@"):
        if cron.lower() not in _MACROS:
            known = ", ".join(_MACROS)
            raise ScheduleError(f"cron: {cron[:_LONGEST]!r} is unknown; there are {known}")
        return _MACROS[cron.lower()]
    if len(cron) > _LONGEST:
        raise ScheduleError(f"cron has {len(cron)} characters, more than {_LONGEST}")
    parts = cron.split(" ")
    if len(parts) != len(_FIELDS):
        raise ScheduleError(
            "cron has five fields: minute, hour, day-of-month, month, day-of-week "
            f"(for seconds use every), not {len(parts) if cron else 0}"
        )
    for (name, size), part in zip(_FIELDS.items(), parts, strict=True):
        if any(int(step) > size for step in re.findall(r"/([0-9]+)", part)):
            raise ScheduleError(f"cron: the step in {name} {part!r} is longer than the field")
    _check_matches(cron)
    return cron


def _check_matches(cron: str) -> None:
    try:
        next(CronSim(cron, _START))  # gives up after fifty years
    except CronSimError as error:
        raise ScheduleError(f"cron: {str(error).lower()} in {cron!r}") from None
    except StopIteration:
        raise ScheduleError(f"cron: {cron!r} matches no day") from None


def cron_after(cron: str, zone: ZoneInfo, moment: datetime) -> datetime:
    """Return the first match in `zone` after an aware moment, in UTC.

    A time that the clocks skip is met once, right after the gap; one that they repeat is met the
    first time only. Where minute or hour begins with a star, both apply to nothing: each real
    minute counts. Raises ScheduleError when there is none.
    """
    minute, hour, *_days = cron.split(" ")
    runs_through = minute.startswith("*") or hour.startswith("*")
    search = _through_both if runs_through else _fixed_times
    for found in search(cron, zone, moment.astimezone(UTC)):
        if found > moment:
            return found
    raise ScheduleError(f"cron: {cron!r} has no further match")


def _fixed_times(cron: str, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    # The first of two equal wall times may lie before `moment`: the caller skips it.
    for found in CronSim(cron, moment.astimezone(zone)):
        yield found.astimezone(UTC)


def _through_both(cron: str, zone: ZoneInfo, moment: datetime) -> Iterator[datetime]:
    """Yield the match after `moment`, as wall times that really pass.

    cronsim itself leaps over some where the clocks change by half an hour: it is asked for wall
    times that keep one offset, up to the change.
    """
    until = min(moment, _LAST_START) + _FURTHEST
    while moment < until:
        offset = _offset(zone, moment)
        wall = (moment + offset).replace(tzinfo=None)
        match = next(CronSim(cron, wall), None)
        if match is None:
            return
        found = match.replace(tzinfo=UTC) - offset
        # Before a leap to next year's match: the same wall times may come again at once.
        soon = moment + _LONGEST_SHIFT
        changed = next((end for end in (soon, found) if _offset(zone, end) != offset), None)
        if changed is None or (change := _change(zone, moment, changed)) > found:
            yield found
            return
        yield from _at_change(cron, zone, change)
        moment = change


def _at_change(cron: str, zone: ZoneInfo, change: datetime) -> Iterator[datetime]:
    """Yield the moment of a change itself, if its new wall time matches."""
    wall = (change + _offset(zone, change)).replace(tzinfo=None)
    if next(CronSim(cron, wall - _SECOND), None) == wall:
        yield change


def _offset(zone: ZoneInfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the second at which the offset is first another one than at `before`."""
    low, offset = before.replace(microsecond=0), _offset(zone, before)
    high = after.replace(microsecond=0)
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high
