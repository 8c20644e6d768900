"""The fleet: several workers in one process, each in a thread, stopped and ended together.

Signals are the main thread's: its handler counts them and wakes the wait, and the loop tells the
workers. Handlers of jobs run in the workers' children, so no thread here runs project code.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import FrameType
from typing import Protocol

from django_leasequeue.runtime.stop_signals import stop_signals
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Member", "run_fleet"]

_LOOK_SECONDS = 60.0


class Member(Protocol):
    """What a fleet asks of a worker."""

    name: str

    def run(self) -> int:
        """Work in the calling thread until the end; return the exit code."""

    def stop(self) -> None:
        """Drain; may be called from any thread, before `run` too, and more than once."""

    def abort(self) -> None:
        """End soon, without waiting for handlers; may be called from any thread."""


def run_fleet(workers: Sequence[Member]) -> int:
    """Run each worker in a thread of its own until all have ended; return the exit code.

    The first SIGTERM or SIGINT stops all, a further one aborts all (in the main thread; elsewhere
    no signal is handled). When a worker ends with a code other than 0, the others are stopped and
    that code is returned; else 0. All threads have ended when this returns.
    """
    fleet = _Fleet(workers)
    try:
        with fleet.signals():
            return fleet.run()
    finally:
        fleet.close()


class _Fleet:
    def __init__(self, workers: Sequence[Member]) -> None:
        self._workers = workers
        self._wakeup = Wakeup()
        self._signals_seen = 0
        self._codes: list[int] = []  # appended to by the threads, in the order of their ends
        self._told_to_stop = False

    def run(self) -> int:
        threads = [
            threading.Thread(target=self._run_one, args=(worker,), name=f"worker {worker.name}")
            for worker in self._workers
        ]
        try:
            for thread in threads:
                thread.start()
            self._look_after_all()
        except BaseException:
            self._stop_all()  # the process could not end while those that were started go on
            raise
        finally:
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
        return self._first_failure()

    def close(self) -> None:
        self._wakeup.close()

    def _run_one(self, worker: Member) -> None:
        code = 1  # of one that does not even return
        try:
            code = worker.run()
        finally:
            self._codes.append(code)
            self._wakeup.set()

    def _look_after_all(self) -> None:
        handled = 0
        while len(self._codes) < len(self._workers):
            self._wakeup.wait(_LOOK_SECONDS)
            seen = self._signals_seen
            if seen or self._first_failure():
                self._stop_all()
            if seen > max(handled, 1):
                for worker in self._workers:
                    worker.abort()
            handled = seen

    def _stop_all(self) -> None:
        if not self._told_to_stop:
            self._told_to_stop = True
            for worker in self._workers:
                worker.stop()

    def _first_failure(self) -> int:
        return next((code for code in self._codes if code), 0)

    def signals(self) -> AbstractContextManager[None]:
        return stop_signals(self._on_signal, self._wakeup)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals_seen += 1
        self._wakeup.set()
