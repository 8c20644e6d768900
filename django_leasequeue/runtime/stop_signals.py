"""Stop signals: SIGTERM and SIGINT handled in the main thread, and the wait there ended by them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Handler", "stop_signals"]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Handler = Callable[[int, FrameType | None], None]


@contextmanager
def stop_signals(
    handler: Handler, wakeup: Wakeup, others: Mapping[int, Handler] | None = None
) -> Iterator[None]:
    """Call `handler` for stop signals while the block runs; outside the main thread do nothing.

    `others` are handlers of further signals. All are put back afterwards. Whichever thread the
    kernel hands a signal to, a wait for `wakeup` in the main one ends.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Handler] = {**dict.fromkeys(_SIGNALS, handler), **(others or {})}
    waker = signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    previous = {number: signal.signal(number, act) for number, act in handlers.items()}
    try:
        yield
    finally:
        signal.set_wakeup_fd(waker)
        for number, before in previous.items():
            signal.signal(number, before)
