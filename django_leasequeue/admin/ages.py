"""Spans of time as an operator reads them: in their largest unit, in the reader's language."""

from __future__ import annotations

from django.utils.translation import gettext

__all__ = ["age"]

_DAY = 24 * 3600.0


def age(seconds: float) -> str:
    """Return a time span in its largest unit, "0 s" for one that has not begun."""
    if seconds >= 2 * _DAY:
        return gettext("%d d") % (seconds / _DAY)
    if seconds >= 2 * 3600:
        return gettext("%d h") % (seconds / 3600)
    if seconds >= 2 * 60:
        return gettext("%d min") % (seconds / 60)
    return gettext("%d s") % max(seconds, 0.0)
