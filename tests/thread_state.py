"""What a handler may leave in its thread's context: a variable, language, time zone, decimals."""

from __future__ import annotations

import contextvars
import decimal
import zoneinfo

from django.utils import timezone, translation

__all__ = ["CHANGED", "UNTOUCHED", "VARIABLE", "change", "state"]

VARIABLE = contextvars.ContextVar("VARIABLE", default="untouched")
UNTOUCHED = ("untouched", "en-us", "UTC", 28)
CHANGED = ("changed", "fr", "Asia/Tokyo", 5)

State = tuple[str, str, str, int]


def state() -> State:
    """Return what is active in the calling thread."""
    return (
        VARIABLE.get(),
        translation.get_language(),
        timezone.get_current_timezone_name(),
        decimal.getcontext().prec,
    )


def change() -> None:
    """Make it CHANGED."""
    VARIABLE.set("changed")
    translation.activate("fr")
    timezone.activate(zoneinfo.ZoneInfo("Asia/Tokyo"))
    decimal.getcontext().prec = 5
