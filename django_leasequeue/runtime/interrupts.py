"""Interrupts: end a running handler from outside, but never inside a critical section.

Only the main thread raises, from its own signal handler; whoever wants a handler to end sends the
process a signal. A critical section reaches from the last fenced statement to COMMIT's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django_leasequeue.exceptions import JobInterrupted

__all__ = ["Interrupts"]


class Interrupts:
    """The window in which the job running in the main thread may be interrupted."""

    def __init__(self) -> None:
        self._open = False
        self._pending: JobInterrupted | None = None

    @contextmanager
    def window(self) -> Iterator[None]:
        """Let interrupts through while the block runs, the one that came just before it too."""
        try:
            self.restore(was_open=True)
            yield
        finally:
            self._open = False

    def hold_back(self) -> bool:
        """Begin a critical section; return what `restore` is to be given at its end."""
        was_open, self._open = self._open, False
        return was_open

    def restore(self, *, was_open: bool) -> None:
        """End a critical section and raise what came during it."""
        self._open = was_open
        if was_open and self._pending is not None:
            pending, self._pending = self._pending, None
            raise pending

    def deliver(self, interrupt: JobInterrupted) -> None:
        """Raise `interrupt` here if the window is open, else keep it for the section's end.

        Called by the signal handler, in the main thread.
        """
        if self._open:
            raise interrupt
        self._pending = interrupt
