"""Polling: how long an idle worker waits before it looks again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from django_leasequeue.runtime.clock import ticks

__all__ = ["Poll"]

_GROWTH = 1.5
#: Where a job comes each second the next one is waited for at full attention.
_ATTENTIVE = 1.2


@dataclass(slots=True)
class Poll:
    """From `shortest` seconds after activity, growing to `longest`, with jitter.

    Until a little more than a second has passed since the activity it grows once only.
    """

    shortest: float
    longest: float
    _next: float = 0.0
    _attentive_until: float = 0.0

    def active(self) -> None:
        """There was work: look again soon."""
        self._next = 0.0
        self._attentive_until = ticks() + _ATTENTIVE

    def wait_seconds(self) -> float:
        """Return how long to wait now."""
        if ticks() < self._attentive_until:
            most = min(self.longest, self.shortest * _GROWTH)
        else:
            most = self.longest
        self._next = min(most, max(self.shortest, self._next * _GROWTH))
        return self._next * random.uniform(0.8, 1.0)
