"""Waiting for a fact instead of for time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE = 0.02


def wait_until(predicate: Callable[[], T], *, timeout: float = 10, message: str = "") -> T:
    """Return the predicate's first true value; AssertionError after `timeout` seconds without."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise AssertionError(message or f"not true within {timeout} s: {predicate}")
        time.sleep(PAUSE)
    return value
