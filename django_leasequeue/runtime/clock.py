"""The worker's own clock, for trust in leases: it goes on while the machine sleeps."""

from __future__ import annotations

import time

__all__ = ["ticks"]

_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


def ticks() -> float:
    """Return seconds from an arbitrary start; counts suspends, unlike a monotonic clock."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
