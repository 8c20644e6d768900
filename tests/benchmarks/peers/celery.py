"""Celery on Redis: one prefork process, four prefetched, late acknowledgement, results stored."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from tests.benchmarks.peers.marks import mark


@cache
def app() -> Any:
    """Return the application."""
    from celery import Celery

    made = Celery(
        "bench", broker=os.environ["PEER_REDIS_URL"], backend=os.environ["PEER_REDIS_URL"]
    )
    made.conf.update(
        worker_concurrency=1,
        worker_prefetch_multiplier=4,
        task_acks_late=True,
        task_ignore_result=False,
        broker_connection_retry_on_startup=True,
    )

    @made.task(name="noop")
    def noop(n: int) -> None:
        mark()

    return made


def _redis() -> Any:
    from redis import Redis

    return Redis.from_url(os.environ["PEER_REDIS_URL"])


def setup() -> None:
    """Forget what an earlier turn left."""
    _redis().flushdb()


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    task = app().tasks[kind]
    for n in range(count):
        task.delay(n)


def work() -> None:
    """Run its worker."""
    app().worker_main(["worker", "--pool", "prefork", "--loglevel", "INFO"])


def done() -> int:
    """Count the results."""
    return sum(1 for _key in _redis().scan_iter("celery-task-meta-*", count=10_000))
