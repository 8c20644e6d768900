"""huey on Redis: one thread that runs tasks, and results that it keeps."""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Any

from tests.benchmarks.peers.marks import mark


@cache
def queue() -> Any:
    """Return the huey of this adapter."""
    from huey import RedisHuey

    return RedisHuey("bench", url=os.environ["PEER_REDIS_URL"], store_none=True)


def run(huey: Any, verb: str, count: int = 0) -> int:
    """Enqueue so many, run the consumer, or count results: the same on each storage."""

    @huey.task(name="noop")
    def noop(n: int) -> None:
        mark()

    if verb == "enqueue":
        for n in range(count):
            noop(n)
    elif verb == "work":
        logging.basicConfig(level=logging.INFO)
        huey.create_consumer(workers=1, worker_type="thread", periodic=False).run()
    return 0 if huey.pending_count() else int(huey.result_count())


def setup() -> None:
    """Forget what an earlier turn left."""
    queue().flush()


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    run(queue(), "enqueue", count)


def work() -> None:
    """Run its consumer."""
    run(queue(), "work")


def done() -> int:
    """Count the results."""
    return run(queue(), "done")
