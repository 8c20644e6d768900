"""Interrupts: end a running handler from outside, but never inside a critical section.

Whoever wants a handler to end asks here, from any thread. In the main thread a signal handler
raises, which ends sleeps and waits of Python as well; in another thread the interpreter raises at
the next bytecode. A coroutine's task is cancelled instead. A critical section reaches from the
last fenced statement to COMMIT's answer; what comes meanwhile is raised at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from django_leasequeue.core.lease import Lease
from django_leasequeue.exceptions import JobInterrupted
from django_leasequeue.runtime.clock import ticks

__all__ = ["SIGNAL", "Interrupts"]

#: The signal that wakes the main thread for an interrupt. Windows has none: there, at bytecodes.
SIGNAL = getattr(signal, "SIGUSR1", None)
#: A second interrupt waits so long, for the first one's way out of the handler.
_APART = 0.2


class Interrupts:
    """The window in which the job that runs in one thread may be interrupted."""

    def __init__(self) -> None:
        self._open = False
        self._lease: Lease | None = None
        self._thread: int | None = None
        self._signals = False
        self._pending: tuple[Lease | None, JobInterrupted] | None = None
        self._raised_at = -1.0
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        # Taken by the asking thread, and by a handler's thread that no signal handler enters.
        self._lock = threading.Lock()

    def window(self, lease: Lease) -> _Window:
        """Let interrupts of `lease` through in a `with` block, those just before it too."""
        return _Window(self, lease)

    def enter(self, lease: Lease) -> None:
        """Open the window for the calling thread; raises an interrupt that waits for `lease`."""
        thread = threading.current_thread()
        self._thread, self._lease = thread.ident, lease
        self._signals = SIGNAL is not None and thread is threading.main_thread()
        self._raised_at = -1.0
        self.restore(was_open=True)

    def close(self) -> None:
        """Let none through any more: the attempt's end is decided. May be called twice."""
        self.hold_back()
        self._lease = self._pending = self._task = None

    def hold_back(self) -> bool:
        """Begin a critical section; return what `restore` is to be given at its end."""
        was_open, self._open = self._open, False
        if not self._signals and self._thread is not None:
            with self._lock:  # what was asked for and not raised yet stays pending
                _raise_in(self._thread, None)
        return was_open

    def restore(self, *, was_open: bool) -> None:
        """End a critical section and raise what came during it."""
        self._open = was_open
        self._raise_pending()

    def request(self, interrupt: JobInterrupted, lease: Lease | None = None) -> None:
        """Interrupt the job of `lease`, or whichever runs, as soon as it may be. Any thread."""
        with self._lock:
            self._pending = (lease, interrupt)
            if self._cancel_task():
                pass
            elif self._signals and SIGNAL is not None and self._thread is not None:
                signal.pthread_kill(self._thread, SIGNAL)
            elif self._open and self._due() and self._thread is not None:
                _raise_in(self._thread, type(interrupt))

    def deliver(self, interrupt: JobInterrupted) -> None:
        """Interrupt whichever job runs here; for the main thread's own signal handlers."""
        self._pending = (None, interrupt)
        if not self._cancel_task():
            self._raise_pending()

    def wake(self) -> None:
        """Have the signal handlers run, if it is the main thread where a job runs. Any thread."""
        if self._signals and SIGNAL is not None and self._thread is not None:
            signal.pthread_kill(self._thread, SIGNAL)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The signal handler of SIGNAL."""
        self._raise_pending()

    @contextmanager
    def cancelling(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """While the block runs, an interrupt cancels `task`, which runs in the calling loop."""
        self._task = (asyncio.get_running_loop(), task)
        try:
            if self._due():
                task.cancel()
            yield
        finally:
            self._task = None

    def take(self) -> JobInterrupted | None:
        """Return the interrupt for which a task was cancelled, if there was one."""
        pending, due, self._pending = self._pending, self._due(), None
        return pending[1] if pending is not None and due else None

    def _cancel_task(self) -> bool:
        """Cancel the coroutine, if one runs and it is the one that is meant."""
        task = self._task
        if task is None:
            return False
        if self._due():
            with contextlib.suppress(RuntimeError):  # its loop has ended meanwhile
                task[0].call_soon_threadsafe(task[1].cancel)
        return True

    def _due(self) -> bool:
        return self._pending is not None and self._pending[0] in (None, self._lease)

    def _raise_pending(self) -> None:
        """Raise what is asked for, if the window is open for it."""
        if not (self._open and self._due()) or self._task is not None:
            return
        now = ticks()
        if now - self._raised_at < _APART:
            return
        self._raised_at = now
        interrupt = self.take()
        if interrupt is not None:
            raise interrupt


class _Window:
    """No generator: an interrupt at its very end must not leave one behind to be closed later."""

    def __init__(self, interrupts: Interrupts, lease: Lease) -> None:
        self._interrupts = interrupts
        self._lease = lease

    def __enter__(self) -> None:
        self._interrupts.enter(self._lease)

    def __exit__(self, *exc_info: object) -> None:
        self._interrupts.close()


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    """Let `thread` raise `kind` at its next bytecode; None takes that back."""
    argument = ctypes.py_object(kind) if kind is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), argument)
