"""The storm's producer: jobs of all kinds, each under a key, until their enqueue was answered."""

from __future__ import annotations

import random
from typing import Any

from django.db import DatabaseError, InterfaceError, connection

from django_leasequeue import enqueue_many
from django_leasequeue.core.transaction import CommitUnknown
from tests.chaos.kinds import QUEUES, SHARES

BATCH = 50

#: What asking a server that may be gone can end in.
Gone = (DatabaseError, InterfaceError, CommitUnknown)


class Orders:
    """So many jobs to enqueue; `acknowledged` are the ids of those whose enqueue was answered."""

    def __init__(self, count: int, chance: random.Random) -> None:
        self.batches = max(1, count // BATCH)
        self._waiting = [self._order(number, chance) for number in range(count)]
        self.acknowledged: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def place(self, count: int) -> None:
        """Enqueue the next so many, all or none; those without an answer are tried again."""
        batch = self._waiting[:count]
        try:
            jobs = enqueue_many(batch)
        except Gone:
            connection.close()
            return
        self.acknowledged.update(job.id for job in jobs)
        del self._waiting[: len(batch)]

    @staticmethod
    def _order(number: int, chance: random.Random) -> tuple[str, dict[str, Any], dict[str, Any]]:
        (kind,) = chance.choices(list(SHARES), list(SHARES.values()))
        payload = {"seconds": chance.uniform(0.5, 3)} if kind == "storm.slow" else {}
        options = {
            "key": f"storm-{number}",
            "queue": chance.choice(QUEUES),
            "priority": chance.choice([0, 0, 0, 5]),
        }
        return kind, payload, options
