"""Values on the command line: job ids, moments, amounts; what is wrong is a usage error."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django_leasequeue.codec import clean_text

__all__ = [
    "age_from",
    "job_id",
    "moment_from",
    "moment_or_age",
    "name_of",
    "number_from",
    "seconds_from",
]

_LARGEST_ID = 2**63 - 1
_AGE = re.compile(r"(\d{1,9})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def job_id(text: str) -> int:
    """Return a job's id; a `#` before it is allowed."""
    digits = text.removeprefix("#")
    if not (digits.isascii() and digits.isdigit()) or not 0 < int(digits[:20]) <= _LARGEST_ID:
        raise ArgumentTypeError(f"{text!r} is no job id")
    return int(digits)


def age_from(text: str) -> timedelta:
    """Return an age such as 0, 90s, 15m, 2h, 7d, 4w."""
    found = moment_or_age(text) if _AGE.fullmatch(text) else None
    if isinstance(found, timedelta):
        return found
    if text == "0":
        return timedelta()
    raise ArgumentTypeError(f"{text!r} is no age: 90s, 15m, 12h, 30d or 4w for one, or 0")


def moment_or_age(text: str) -> datetime | timedelta:
    """Return a time with a zone, or an age such as 90s, 15m, 2h, 7d, 4w."""
    if match := _AGE.fullmatch(text):
        try:
            return timedelta(**{_UNITS[match[2]]: int(match[1])})
        except OverflowError:
            raise ArgumentTypeError(f"{text!r} is too long") from None
    return moment_from(text)


def moment_from(text: str) -> datetime:
    """Return a time with a zone, 2042-01-31T12:00:00Z for one."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ArgumentTypeError(f"{text!r} is no time with a zone: 2042-01-31T12:00:00Z for one")


def name_of(longest: int) -> Callable[[str], str]:
    """Return a type for names that a column of so many characters can hold."""

    def checked(text: str) -> str:
        if not text or clean_text(text, longest) != text:
            raise ArgumentTypeError(f"{text!r} is no name of 1 to {longest} characters")
        return text

    return checked


def number_from(low: int, high: int) -> Callable[[str], int]:
    """Return a type for whole numbers between `low` and `high`, both allowed."""

    def checked(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is no whole number") from None
        if not low <= number <= high:
            raise ArgumentTypeError(f"{number} is not between {low} and {high}")
        return number

    return checked


def seconds_from(low: float) -> Callable[[str], float]:
    """Return a type for seconds from `low` on."""

    def checked(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number < math.inf:
            raise ArgumentTypeError(f"{text!r} is no number of seconds from {low:g} on")
        return number

    return checked
