"""One at a time: a lock in Django's cache, so that like jobs do not run side by side (seed S2).

The lock is a convenience, not a guarantee as a lease is: see the limits in `only_one`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.core.cache import caches

from django_leasequeue.exceptions import Snooze

__all__ = ["OneAtATime", "only_one"]

_PREFIX = "leasequeue:one:"


@contextmanager
def only_one(
    name: str,
    *,
    timeout: float = 600,
    wait: float | timedelta = 30,
    cache: str = "default",
) -> Iterator[None]:
    """Hold the lock `name` in the block; raise Snooze(`wait`) while another job holds it.

    `timeout` is seconds after which the lock is free whoever holds it: choose it above the job's
    time limit. `cache` is an alias in CACHES that all workers share.

    Its limits: the lock is not renewed; it is gone when the cache evicts it, is flushed, restarts
    or fails over; a worker that dies holds it until `timeout`; a block that outlasts `timeout`
    runs beside the next one, and then leaves that one's lock alone. The local-memory cache locks
    within one process, the dummy cache not at all. What must never happen twice belongs in
    `context.complete()` or under a unique key.
    """
    key, owner = f"{_PREFIX}{name}", secrets.token_hex(16)
    store = caches[cache]
    began = time.monotonic()
    if not store.add(key, owner, timeout):
        raise Snooze(wait, "Another job holds the lock")
    try:
        yield
    finally:
        # No cache can compare and delete in one step: close to the timeout the lock may become
        # another's in between.
        in_time = time.monotonic() - began < timeout * 0.95
        if in_time and store.get(key) == owner:
            store.delete(key)


class OneAtATime:
    """Lets one job of each type in `job_types` run at a time; the others are snoozed.

    Meant to be subclassed: set `job_types`, `timeout`, `wait` and `cache`, which are those of
    `only_one` (whose limits are this class's), or override `lock_name`. A snoozed job gets its
    attempt back and may wait for ever: give it an `expires`.
    """

    job_types: tuple[str, ...] = ()
    timeout: float = 600
    wait: float | timedelta = 30
    cache: str = "default"

    def lock_name(self, context: Any) -> str | None:
        """Return the name of the lock that this attempt needs, or None for no lock."""
        return context.job_type if context.job_type in self.job_types else None

    def around(self, context: Any, call: Callable[[], Any]) -> Any:
        """Run the attempt while it holds its lock."""
        name = self.lock_name(context)
        if name is None:
            return call()
        with only_one(name, timeout=self.timeout, wait=self.wait, cache=self.cache):
            return call()
