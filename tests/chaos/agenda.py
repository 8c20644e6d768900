"""What is to be done when: the storm's one loop keeps it."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

Deed = Callable[[], None]


class Agenda:
    """Deeds and their times; `run_due` does those whose time has come, in order."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, Deed]] = []
        self._numbers = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def after(self, seconds: float, deed: Deed) -> None:
        """Do this in so many seconds."""
        heapq.heappush(self._entries, (time.monotonic() + seconds, next(self._numbers), deed))

    def run_due(self) -> None:
        """Do what is due by now; a deed may add others."""
        while self._entries and self._entries[0][0] <= time.monotonic():
            heapq.heappop(self._entries)[2]()
