"""Reloading in development: a watcher that starts the worker again when code has changed.

The worker is the same command in a subprocess. It inherits one end of a pipe and stops when the
other one is gone, so it ends with its watcher however that ends. SIGINT is blocked in it: Ctrl-C
in a terminal reaches both, and the watcher's SIGTERM after it would be a second signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any

from django.apps import apps
from django.utils import autoreload

from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.stop_signals import stop_signals
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["follow_watcher", "is_watched", "run_watcher"]

_PIPE = "LEASEQUEUE_WATCHER_PIPE"
_LOOK_SECONDS = 1.0
_END_SECONDS = 0.1


def is_watched() -> bool:
    """Tell whether this process is the worker that a watcher has started."""
    return _PIPE in os.environ


def follow_watcher(stop: Callable[[], None]) -> None:
    """Call `stop`, in another thread, when the watcher is no longer there; in the main thread."""
    reader = int(os.environ.pop(_PIPE))
    os.set_inheritable(reader, False)  # what a handler starts is not watched
    # It would be started with the first child, and lets SIGINT through in the thread that does it.
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def wait_for_the_end() -> None:
        os.read(reader, 1)  # nothing is ever written: this returns at the end of the pipe
        stop()

    threading.Thread(target=wait_for_the_end, name="watcher's pipe", daemon=True).start()


def run_watcher(patience: float) -> int:
    """Run this very command as a watched worker, anew after each change; return 0 when stopped.

    A changed file stops the worker with SIGTERM, and SIGKILL after `patience` seconds. A worker
    that ends by itself is started again after the next change. SIGTERM and SIGINT stop the worker,
    then the watcher; a further one makes the worker abort. Only in the main thread.
    """
    watcher = _Watcher(patience)
    with watcher.signals():
        watcher.run()
    return 0


class _Worker:
    """The worker command in a subprocess, with the pipe that it ends with."""

    def __init__(self) -> None:
        reader, self._pipe = os.pipe()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process = subprocess.Popen(  # noqa: S603  (the command that runs here)
                autoreload.get_child_arguments(),
                env={**os.environ, _PIPE: str(reader)},
                pass_fds=(reader,),
            )
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(reader)

    def exit_code(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._pipe)


class _Watcher:
    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._wakeup = Wakeup()
        self._worker: _Worker | None = None
        self._signals_seen = 0
        self._changed: Path | None = None
        self._failure: BaseException | None = None
        self._reloader = autoreload.get_reloader()

    def run(self) -> None:
        self._worker = _Worker()
        try:
            self._start_looking()
            self._look_after_worker()
        finally:
            self._reloader.stop()
            self._end()

    def _look_after_worker(self) -> None:
        ended = False
        while not self._signals_seen:
            self._wakeup.wait(_LOOK_SECONDS)
            if self._failure is not None:
                raise self._failure
            if self._changed is not None:
                self._restart()
                ended = False
            elif not ended and self._worker and (code := self._worker.exit_code()) is not None:
                ended = True
                log_event("worker_ended", code=code)

    def _restart(self) -> None:
        log_event("worker_reloading", path=str(self._changed))
        self._changed = None
        self._end()
        if not self._signals_seen:
            self._worker = _Worker()

    def _end(self) -> None:
        """Stop the worker and wait for its end; further signals make it abort."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        seen, until = self._signals_seen, ticks() + self._patience
        worker.terminate()
        while worker.exit_code() is None and ticks() < until:
            self._wakeup.wait(_END_SECONDS)
            if self._signals_seen > seen:
                seen = self._signals_seen
                worker.terminate()
        worker.kill()

    def _start_looking(self) -> None:
        autoreload.file_changed.connect(self._on_change)
        autoreload.autoreload_started.send(sender=self._reloader)
        for config in apps.get_app_configs():
            if "site-packages" not in Path(config.path).parts:
                self._reloader.watch_dir(config.path, "**/*.py")
        threading.Thread(target=self._look, name="reloader", daemon=True).start()

    def _look(self) -> None:
        try:
            for _ in self._reloader.tick():
                if self._reloader.should_stop:
                    return
        except BaseException as error:  # noqa: BLE001  (the main thread raises it)
            self._failure = error
            self._wakeup.set()

    def _on_change(self, file_path: Path, **kwargs: Any) -> bool:
        """Django's signal: True says that it is seen to, or Django would end the process."""
        self._changed = file_path
        self._wakeup.set()
        return True

    def signals(self) -> AbstractContextManager[None]:
        return stop_signals(self._on_signal, self._wakeup)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals_seen += 1
        self._wakeup.set()
