"""The processes of a running worker: control, the forkserver, the children, as Linux has them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.waiting import wait_until
from tests.worker_process import WorkerProcess


class Process(NamedTuple):
    """A process, told apart from a later one of the same number by when it began."""

    pid: int
    began: str

    @property
    def gone(self) -> bool:
        """Tell whether it has ended, collected by its parent or not."""
        fields = _stat(self.pid)
        return not fields or fields[0] in "ZX" or fields[19] != self.began

    @property
    def stopped(self) -> bool:
        """Tell whether it stands still."""
        return _stat(self.pid)[:1] == ["T"]

    @property
    def description(self) -> str:
        """Its id, state and command line, for a message."""
        return f"{self.pid} {_stat(self.pid)[:1]} {_command(self.pid)}"

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


def process(pid: int) -> Process:
    """Return the process that has this number now."""
    return Process(pid, _stat(pid)[19])


def forkserver_of(worker: WorkerProcess) -> Process:
    """Return the process that makes the worker's children, once it is there."""

    def found() -> list[int]:
        return [pid for pid in _children(worker.pid) if "forkserver" in _command(pid)]

    (pid,) = wait_until(found, message="no forkserver")
    return process(pid)


def children_of(worker: WorkerProcess, count: int = 1) -> list[Process]:
    """Return the worker's children, once there are at least `count`."""
    server = forkserver_of(worker).pid

    def found() -> list[int]:
        pids = _children(server)
        return pids if len(pids) >= count else []

    return [process(pid) for pid in wait_until(found, message=f"not {count} children")]


def children_now(worker: WorkerProcess) -> list[Process]:
    """Return the worker's children of this moment: none while it starts or ends."""
    servers = [pid for pid in _children(worker.pid) if "forkserver" in _command(pid)]
    found = [(pid, _stat(pid)) for server in servers for pid in _children(server)]
    return [Process(pid, fields[19]) for pid, fields in found if fields]


def tree_of(pid: int) -> list[Process]:
    """Return the process and all that descend from it now, parents first."""
    found = [pid]
    for parent in found:
        found += _children(parent)
    fields = [(pid, _stat(pid)) for pid in found]
    return [Process(pid, one[19]) for pid, one in fields if one]


def stop(processes: Iterable[Process]) -> None:
    """Let them stand still; returns when they do."""
    processes = list(processes)
    for one in processes:
        one.signal(signal.SIGSTOP)
    for one in processes:
        wait_until(lambda one=one: one.stopped)


def go_on(processes: Iterable[Process]) -> None:
    """Let them run again; the first of them may kill others before their turn."""
    for one in processes:
        with suppress(ProcessLookupError):
            one.signal(signal.SIGCONT)


def wait_gone(processes: Iterable[Process], timeout: float = 10) -> None:
    """Return when all have ended."""
    processes = list(processes)

    def left() -> list[tuple[int, str]]:
        return [(one.pid, _command(one.pid)) for one in processes if not one.gone]

    try:
        wait_until(lambda: not left(), timeout=timeout)
    except AssertionError:
        raise AssertionError(f"still there after {timeout} s: {left()}") from None


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has just ended
        return []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc's stat after the name, from the state on; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
