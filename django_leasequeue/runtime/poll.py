"""Polling: how long an idle worker waits before it looks again."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["Poll"]

_GROWTH = 1.5


@dataclass(slots=True)
class Poll:
    """From `shortest` seconds after activity, growing to `longest`, with jitter."""

    shortest: float
    longest: float
    _next: float = 0.0

    def active(self) -> None:
        """There was work: look again soon."""
        self._next = 0.0

    def wait_seconds(self) -> float:
        """Return how long to wait now."""
        self._next = min(self.longest, max(self.shortest, self._next * _GROWTH))
        return self._next * random.uniform(0.8, 1.0)
