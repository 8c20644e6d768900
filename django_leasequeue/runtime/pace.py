"""The pace: how long handlers take here, and so how many jobs may wait behind one another.

Handlers that are faster than a claim wait for the next one most of the time, unless hundreds of
them are claimed together.
"""

from __future__ import annotations

from dataclasses import dataclass

from django_leasequeue.runtime.charges import Ended

__all__ = ["Pace"]

#: No handler is taken to be faster: a mean near nothing would promise any number of them.
_LEAST_SECONDS = 0.0005
#: Control and a child each hold the payloads of what waits.
_MOST_CHARACTERS = 16 * 1024 * 1024


@dataclass(slots=True)
class Pace:
    """The mean running time of handlers, in seconds, and size of payloads, in characters.

    Both are 0 until a handler has ended.
    """

    mean: float = 0.0
    size: float = 0.0

    def learn(self, end: Ended) -> None:
        """Follow how long handlers take: fast when they grow longer, slowly when shorter."""
        if end.charge.started_at is None or end.charge.burial:
            return
        self.mean = _followed(self.mean, max(end.seconds, _LEAST_SECONDS))
        self.size = _followed(self.size, 1 + len(end.charge.job.payload))

    def within(self, seconds: float, most: int) -> int:
        """Return how many jobs run in so many seconds; 0 while nothing is known.

        At most `most`, and with payloads of 16 Mi characters together.
        """
        if not self.mean:
            return 0
        return int(min(most, seconds / self.mean, _MOST_CHARACTERS / self.size))


def _followed(mean: float, value: float) -> float:
    """Return the mean after one more value: half of a larger one counts, a tenth of a smaller."""
    if not mean:
        return value
    return mean + (0.5 if value > mean else 0.1) * (value - mean)
