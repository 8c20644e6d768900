"""Moments: the worker's own events, DEBUG ones included, as facts that a test can wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.waiting import wait_until

Event = dict[str, Any]


class Moments(logging.Handler):
    """The events of this process so far; `on` calls a function at one, in the thread it is in."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.events: list[Event] = []
        self._hooks: dict[str, list[Callable[[Event], Any]]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        name = getattr(record, "event", None)
        if name is None:
            return
        event = {"event": name, **getattr(record, "fields", {})}
        self.events.append(event)
        for hook in self._hooks.get(name, ()):
            hook(event)

    def on(self, name: str, hook: Callable[[Event], Any]) -> None:
        """Call `hook` with every event of that name from now on."""
        self._hooks.setdefault(name, []).append(hook)

    def named(self, name: str, **fields: Any) -> list[Event]:
        """Return the events of that name so far, with these fields."""
        return [
            event
            for event in list(self.events)
            if event["event"] == name and all(event.get(k) == v for k, v in fields.items())
        ]

    def wait(self, name: str, *, count: int = 1, timeout: float = 20, **fields: Any) -> Event:
        """Return the `count`-th event of that name, once there is one."""
        wait_until(
            lambda: len(self.named(name, **fields)) >= count,
            timeout=timeout,
            message=f"no {name} with {fields} among {[e['event'] for e in self.events]}",
        )
        return self.named(name, **fields)[count - 1]


@contextmanager
def watching() -> Iterator[Moments]:
    """Collect the events of this process inside the block."""
    logger = logging.getLogger("django_leasequeue")
    moments, level = Moments(), logger.level
    logger.addHandler(moments)
    logger.setLevel(logging.DEBUG)
    try:
        yield moments
    finally:
        logger.setLevel(level)
        logger.removeHandler(moments)
