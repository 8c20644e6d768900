"""Orphans: no child, and nothing that it started, outlives the worker it belongs to."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

__all__ = ["die_with_parent", "kill_children_at_exit", "kill_group", "lead_group"]

_PR_SET_PDEATHSIG = 1


def lead_group() -> None:
    """Make this process the leader of a session and a process group of its own."""
    with suppress(OSError, AttributeError):
        os.setsid()


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent, the forkserver, ends (Linux).

    The forkserver ends with control once no child keeps its life line open, so this child closes
    its own: even a handler that is stuck in C code dies with its worker.
    """
    line = getattr(forkserver, "_forkserver", None)
    alive = getattr(line, "_forkserver_alive_fd", None)
    if alive is None:
        return
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.close(alive)
            vars(line)["_forkserver_alive_fd"] = os.open(os.devnull, os.O_RDONLY)


def kill_children_at_exit() -> None:
    """Have this process kill its children's groups when it exits (Linux).

    For the forkserver, which exits when control is gone: the kernel then kills the children, but
    not the programs they started, and a child that is stuck in C code can not do so either.
    """
    atexit.register(_kill_children, os.getpid())


def _kill_children(parent: int) -> None:
    if os.getpid() == parent:  # not in a child that was forked from it
        with suppress(OSError):
            for file in Path("/proc/self/task").glob("*/children"):
                for pid in file.read_text().split():
                    kill_group(int(pid))


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads, and `pid` itself if it leads none yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
