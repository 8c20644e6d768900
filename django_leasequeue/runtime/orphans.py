"""Orphans: no child, and nothing that it started, outlives the worker it belongs to."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from multiprocessing import forkserver

__all__ = ["die_with_parent", "kill_group", "lead_group"]

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


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads, and `pid` itself if it leads none yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
