"""The wake-up: waiting that a signal ends at once, without a lock a signal handler could want."""

from __future__ import annotations

import contextlib
import os
import select

__all__ = ["Wakeup"]


class Wakeup:
    """A pipe: whoever writes a byte, a signal handler included, ends the wait."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._closed = False

    def fileno(self) -> int:
        """Return the end to write to, for signal.set_wakeup_fd."""
        return self._writer

    def set(self) -> None:
        """End the current wait, or the next; do nothing after `close`. Safe in a signal handler."""
        if self._closed:
            return
        with contextlib.suppress(BlockingIOError):  # the pipe is full of wake-ups
            os.write(self._writer, b"\0")

    def wait(self, seconds: float) -> None:
        """Return after `seconds`, or as soon as `set` was called."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._reader, 4096)

    def close(self) -> None:
        """Close both ends."""
        self._closed = True
        os.close(self._reader)
        os.close(self._writer)
