"""Reading settings from the environment: every value is checked, every error says what to set."""

from __future__ import annotations

import math
import os

from django.core.exceptions import ImproperlyConfigured

_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def flag(name: str, default: bool) -> bool:
    """Return a yes/no variable; unset or empty is the default."""
    value = os.environ.get(name, "")
    if not value:
        return default
    try:
        return _FLAGS[value.lower()]
    except KeyError:
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}.") from None


def seconds(name: str, default: float) -> float:
    """Return a variable that holds a number of seconds; unset or empty is the default."""
    value = os.environ.get(name, "")
    if not value:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ImproperlyConfigured(f"{name} must be a number of seconds, not {value!r}.")
    return number


def words(name: str, default: str) -> list[str]:
    """Return a comma-separated variable as a list without empty items."""
    value = os.environ.get(name) or default
    return [word.strip() for word in value.split(",") if word.strip()]
