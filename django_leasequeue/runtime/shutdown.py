"""Shutdown: what SIGTERM and SIGINT mean, first drain, then abort.

A signal handler only sets flags and wakes the loop; a solo worker's second signal also interrupts
the handler that runs in this very thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType

from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.interrupts import SIGNAL, Interrupts
from django_leasequeue.runtime.stop_signals import Handler, stop_signals
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Shutdown"]

_LEAST_SECONDS = 5.0


class Shutdown:
    """Whether the worker is stopping, and since when it may abort; `grace` is seconds."""

    def __init__(self, grace: float, wakeup: Wakeup, on_abort: Callable[[], None]) -> None:
        """`on_abort` is called by the handler of a second signal, in the main thread."""
        self._grace = grace
        self._wakeup = wakeup
        self._on_abort = on_abort
        self._stopping = False
        self._signals = 0
        self._abort_at = float("inf")
        self._leave_at = float("inf")

    @property
    def stopping(self) -> bool:
        """Tell whether no further job is to be started."""
        return self._stopping

    def unheard(self) -> bool:
        """Tell whether a signal may have come that the main thread, in a handler, has not seen.

        Of two in quick succession the kernel may give both to another thread: that wakes nobody.
        """
        return self._wakeup.is_set()

    def aborting(self) -> bool:
        """Tell whether handlers have to end now: the grace period is over, or cut short."""
        return ticks() >= self._abort_at

    def leaving(self) -> bool:
        """Tell whether what could not be written by now is left to its lease's end."""
        return ticks() >= self._leave_at

    def stop(self) -> None:
        """Drain: start no further job, let the running ones finish within the grace period."""
        if not self._stopping:
            now = ticks()
            self._no_later(now + self._grace, now + max(self._grace, _LEAST_SECONDS))
            self._stopping = True
        self._wakeup.set()

    def abort(self) -> None:
        """Cut the grace period short."""
        self.stop()
        now = ticks()
        self._no_later(now, now + _LEAST_SECONDS)
        self._wakeup.set()

    def _no_later(self, abort_at: float, leave_at: float) -> None:
        """Bring the ends forward. A second signal may be handled in the middle of the first."""
        if abort_at < self._abort_at:  # noqa: PLR1730  (no call, at whose end a handler could run)
            self._abort_at = abort_at
        if leave_at < self._leave_at:  # noqa: PLR1730
            self._leave_at = leave_at

    def signals(self, interrupts: Interrupts | None) -> AbstractContextManager[None]:
        """Handle the stop signals while the block runs, in the main thread; else do nothing.

        With `interrupts` of handlers in this thread, their signal as well.
        """
        others: dict[int, Handler] = {}
        if interrupts is not None and SIGNAL is not None:
            others[SIGNAL] = interrupts.on_signal
        return stop_signals(self._on_signal, self._wakeup, others)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals == 1:  # the worker may be draining for a reason of its own
            self.stop()
            return
        self.abort()
        self._on_abort()
