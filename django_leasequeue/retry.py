"""Retry strategies: how long a failed job waits for its next attempt.

Figures are those of seed S2 (exponential 5 s to 1 h, linear 30 s to 10 min, fixed 60 s). A
strategy is pure and knows the attempt's number alone; a callable may look at the error as well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing import Any

__all__ = ["MAX_DELAY", "Backoff", "Exponential", "Fixed", "Linear", "Strategy", "as_seconds"]

#: The longest delay ever written, in seconds (ten years): dates stay in every server's range.
MAX_DELAY = 10 * 366 * 86_400.0


@runtime_checkable
class Strategy(Protocol):
    """Anything that tells the delay before the next attempt from the attempt just ended."""

    def delay_for(self, attempt: int) -> float:
        """Return seconds until the next attempt; `attempt` is 1 after the first run."""
        ...


Backoff = Strategy | Callable[..., "float | timedelta | None"]


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be a finite number of seconds of at least 0, not {value!r}")


@dataclass(frozen=True, slots=True)
class Exponential:
    """`base * 2 ** (attempt - 1)` seconds, never above `cap` seconds (seed S2).

    `jitter=True` draws between half of that and all of it; a number draws 0 to that many seconds
    on top; False adds nothing. The cap is applied last. Raises ValueError for what is no finite
    number of at least 0.
    """

    base: float = 5
    cap: float = 3600
    jitter: bool | float = True

    def __post_init__(self) -> None:
        _positive("base", self.base)
        _positive("cap", self.cap)
        _positive("jitter", float(self.jitter))

    def delay_for(self, attempt: int) -> float:
        """Return seconds after `attempt`, 1 the first; any number is safe. Raises nothing."""
        # ldexp overflows near 2**1024: past 63 doublings any base worth having is over its cap.
        delay = min(self.base * 2.0 ** min(max(attempt, 1) - 1, 63), self.cap)
        if self.jitter is True:
            delay = random.uniform(delay / 2, delay)
        elif self.jitter:
            delay += random.uniform(0, self.jitter)
        return min(delay, self.cap)


@dataclass(frozen=True, slots=True)
class Linear:
    """`base * attempt` seconds, never above `cap` seconds (seed S2).

    Raises ValueError for what is no finite number of at least 0.
    """

    base: float = 30
    cap: float = 600

    def __post_init__(self) -> None:
        _positive("base", self.base)
        _positive("cap", self.cap)

    def delay_for(self, attempt: int) -> float:
        """Return seconds after `attempt`, 1 the first. Raises nothing."""
        return min(self.base * max(attempt, 1), self.cap)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same number of `seconds` (seed S2).

    Raises ValueError for what is no finite number of at least 0.
    """

    seconds: float = 60

    def __post_init__(self) -> None:
        _positive("seconds", self.seconds)

    def delay_for(self, attempt: int) -> float:
        """Return seconds, whichever `attempt` it was. Raises nothing."""
        return self.seconds


def as_seconds(value: Any) -> float:
    """Return a delay in seconds between 0 and MAX_DELAY.

    Takes a number or a timedelta. Raises ValueError for anything else, for NaN and for negative
    values; a delay past MAX_DELAY, infinity included, is cut to it.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise ValueError(f"a delay is seconds or a timedelta, not {type(value).__name__}")
    if not seconds >= 0:  # NaN as well; math.isnan would overflow on a huge int
        raise ValueError("a delay is at least 0 seconds")
    return float(min(seconds, MAX_DELAY))
