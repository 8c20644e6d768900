"""The pace: how long handlers take here, and so how many jobs may wait behind one another."""

from __future__ import annotations

from dataclasses import dataclass

from django_leasequeue.runtime.charges import Ended

__all__ = ["Pace"]

#: No handler is taken to be faster: a mean near nothing would promise any number of them.
_LEAST_SECONDS = 0.0005


@dataclass(slots=True)
class Pace:
    """The mean running time of handlers, in seconds; 0 until one has ended."""

    mean: float = 0.0

    def learn(self, end: Ended) -> None:
        """Follow how long handlers take: fast when they grow longer, slowly when shorter."""
        if end.charge.started_at is None or end.charge.burial:
            return
        seconds = max(end.seconds, _LEAST_SECONDS)
        weight = 0.5 if seconds > self.mean else 0.1
        self.mean = self.mean + weight * (seconds - self.mean) if self.mean else seconds

    def within(self, seconds: float, most: int) -> int:
        """Return how many jobs run in so many seconds, `most` at most; 0 while nothing is known."""
        return int(min(most, seconds / self.mean)) if self.mean else 0
