"""Shutdown: what SIGTERM and SIGINT mean, first drain, then abort.

A signal handler only sets flags, wakes the loop and, on the second signal, interrupts the handler
that runs in this very thread. The end of the grace period is a second signal that the worker
sends to itself, so that a sleeping handler wakes up for it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from django_leasequeue.exceptions import JobInterrupted
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Shutdown"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ABORT_EVERY = 1.0


class Shutdown:
    """Whether the worker is stopping, and since when it may abort; `grace` is seconds."""

    def __init__(self, grace: float, wakeup: Wakeup, interrupts: Interrupts) -> None:
        self._grace = grace
        self._wakeup = wakeup
        self._interrupts = interrupts
        self._stopping = False
        self._abort_at = self._grace_until = float("inf")

    @property
    def stopping(self) -> bool:
        """Tell whether no further job is to be started."""
        return self._stopping

    def grace_over(self) -> bool:
        """Tell whether what is not done yet has to be left."""
        return ticks() >= self._grace_until

    def stop(self) -> None:
        """Drain: start no further job, let the running ones finish within the grace period."""
        if not self._stopping:
            self._abort_at = self._grace_until = ticks() + self._grace
            self._stopping = True
        self._wakeup.set()

    def on_beat(self) -> None:
        """Called from another thread twice a second: abort when the grace period is over."""
        if ticks() >= self._abort_at:
            self._abort_at = ticks() + _ABORT_EVERY
            main = threading.main_thread().ident
            if main is not None:
                signal.pthread_kill(main, signal.SIGTERM)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Handle the stop signals while the block runs, in the main thread; else do nothing."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # Whichever thread the kernel hands the signal to, the wait in this one ends.
        waker = signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        previous = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            yield
        finally:
            signal.set_wakeup_fd(waker)
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._stopping:
            self.stop()
            return
        self._wakeup.set()
        self._interrupts.deliver(JobInterrupted("the worker was told to abort"))
