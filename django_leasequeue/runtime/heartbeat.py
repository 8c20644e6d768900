"""The heartbeat file: its time tells that a worker's loop turns, its content whether it claims.

For probes that are no HTTP client. It lies on a local disk, best in memory: the loop writes it.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.pulse import LIVE_SECONDS, Pulse, not_live, not_ready

__all__ = ["Heartbeat", "read_heartbeat"]

_EVERY = 1.0


class Heartbeat:
    """The file at `path`, for the workers whose `pulses` are returned; threads may share it."""

    def __init__(self, path: str, pulses: Callable[[], Sequence[Pulse]]) -> None:
        self._path = Path(path)
        self._pulses = pulses
        self._shown: str | None = None
        self._due = 0.0
        self._lock = threading.Lock()
        self._refused = False

    def start(self) -> None:
        """Write it for the first time. Raises OSError where it cannot be written."""
        self._write(not_ready(self._pulses()))

    def beat(self) -> None:
        """Touch it, once a second, while all the workers' loops turn; raises nothing."""
        now = ticks()
        if now < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            self._due = now + _EVERY
            self._show()
        finally:
            self._lock.release()

    def stop(self) -> None:
        """Remove it: the workers have ended."""
        with self._lock, suppress(OSError):
            self._path.unlink(missing_ok=True)
            self._due = float("inf")

    def _show(self) -> None:
        pulses = self._pulses()
        if not_live(pulses):
            return
        problem = not_ready(pulses)
        try:
            if problem != self._shown or not self._touch():
                self._write(problem)
            self._refused = False
        except OSError as error:
            self._shown = None
            if not self._refused:
                name = type(error).__qualname__
                log_event("heartbeat_refused", level=logging.WARNING, error=name)
            self._refused = True

    def _touch(self) -> bool:
        """Renew its time; False when somebody has removed it."""
        try:
            os.utime(self._path)
        except FileNotFoundError:
            return False
        return True

    def _write(self, problem: str) -> None:
        new = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            new.write_text(json.dumps({"pid": os.getpid(), "not_ready": problem}), encoding="utf-8")
            new.replace(self._path)  # whoever reads sees the whole of one state
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise
        self._shown = problem


def read_heartbeat(path: str, *, max_age: float = LIVE_SECONDS, ready: bool = False) -> str:
    """Return what is wrong with the worker that writes the file, "" if nothing is.

    `max_age`: seconds since its loop last turned. `ready`: it has to claim jobs as well.
    """
    try:
        # The clock may have been set back since: a time far ahead is as old as one far behind.
        age = abs(time.time() - Path(path).stat().st_mtime)
        state = json.loads(Path(path).read_text(encoding="utf-8"))
        problem = str(state["not_ready"])
    except FileNotFoundError:
        return "there is no heartbeat file: the worker does not run, or has ended"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"the heartbeat file cannot be read: {type(error).__name__}"
    if age > max_age:
        return f"the worker's loop has not turned for {age:.0f} s"
    return problem if ready else ""
