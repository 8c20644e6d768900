"""The wake-up: waiting that a signal ends at once, without a lock a signal handler could want."""

from __future__ import annotations

import contextlib
import os
import select
import threading

__all__ = ["Wakeup"]


class Wakeup:
    """A pipe: whoever writes a byte, a signal handler included, ends the wait."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._closed = False
        # One that a signal handler may take again: the descriptors' numbers are used anew.
        self._lock = threading.RLock()

    def fileno(self) -> int:
        """Return the end to write to, for signal.set_wakeup_fd."""
        return self._writer

    def set(self) -> None:
        """End the current wait, or the next; do nothing after `close`. Safe in a signal handler."""
        with self._lock, contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups
            if not self._closed:
                os.write(self._writer, b"\0")

    def is_set(self) -> bool:
        """Tell whether a wait would return at once."""
        return bool(select.select([self._reader], [], [], 0)[0])

    @property
    def reader(self) -> int:
        """The end that becomes readable when `set` was called."""
        return self._reader

    def wait(self, seconds: float, also: int | None = None) -> bool:
        """Return after `seconds`, as soon as `set` was called, or when `also` is readable.

        Tells whether it was that alone.
        """
        readers = [self._reader] if also is None else [self._reader, also]
        ready, _, _ = select.select(readers, [], [], max(0.0, seconds))
        self.clear()
        return ready == [also]

    def clear(self) -> None:
        """Forget the calls of `set` so far."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)

    def close(self) -> None:
        """Close both ends."""
        with self._lock:
            self._closed = True
            os.close(self._reader)
            os.close(self._writer)
