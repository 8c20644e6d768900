"""The storm's operator, a process of its own: cancels, requeues, pauses and resumes at random.

Ends at SIGTERM, with every queue resumed, and prints what it changed as JSON.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import django

EVERY = (0.1, 0.6)


def main(seed: str) -> int:
    """Operate until SIGTERM; print how often each operation changed something."""
    django.setup()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    operator = Operator(random.Random(seed))
    while not stopping.wait(operator.chance.uniform(*EVERY)):
        with operator.patience():
            operator.act()
    while not operator.resume_all():
        stopping.clear()
        stopping.wait(0.5)
    print(json.dumps(operator.changed), flush=True)  # noqa: T201  (this is its output)
    return 0


class Operator:
    """One operator, and how many jobs or queues each of its operations has changed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.changed: Counter[str] = Counter()

    def act(self) -> None:
        """Do one thing."""
        deeds: list[Callable[[], None]] = [self._cancel, self._requeue, self._requeue, self._pause]
        self.chance.choice(deeds)()

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Let the block fail where the server is gone: the next deed finds a new connection."""
        from django.db import connection

        from tests.chaos.orders import Gone

        try:
            yield
        except Gone:
            connection.close()

    def resume_all(self) -> bool:
        """Resume every queue; return whether all of them were answered."""
        from django_leasequeue import resume
        from tests.chaos.kinds import QUEUES

        left = [*QUEUES]
        with self.patience():
            while left:
                self.changed["resumed"] += resume(left[-1])
                left.pop()
        return not left

    def _cancel(self) -> None:
        from django_leasequeue import cancel

        self.changed["cancelled"] += len(cancel(self._some(3)))

    def _requeue(self) -> None:
        from django_leasequeue import requeue

        self.changed["requeued"] += len(requeue(self._some(40)))

    def _pause(self) -> None:
        from django_leasequeue import pause
        from tests.chaos.kinds import QUEUES

        self.resume_all()
        if self.chance.random() < 0.5:
            self.changed["paused"] += pause(self.chance.choice(QUEUES), by="the storm")

    def _some(self, count: int) -> list[int]:
        """Return the ids of some jobs, whatever has become of them."""
        from django.db.models import Max, Min

        from django_leasequeue.models import Job

        ends = Job.objects.aggregate(first=Min("id"), last=Max("id"))
        if ends["last"] is None:
            return []
        ids = range(ends["first"], ends["last"] + 1)
        return sorted(self.chance.sample(ids, min(count, len(ids))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
