"""Servers of this checkout that no run looks after any more: stopping and removing them.

A process is only taken for one of these servers if its command line names the server's folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

from tests.harness.problems import say
from tests.harness.server import PID_FILE, STOP_SECONDS, parent_folder


def stop_all() -> None:
    """Stop every server of this checkout and remove its data."""
    for folder in sorted(parent_folder().iterdir()):
        if pid := running(folder):
            say(f"stopping {folder.name} (process {pid})")
            _stop(folder, pid)
        shutil.rmtree(folder, ignore_errors=True)
    parent_folder().rmdir()


def sweep() -> None:
    """Remove the data of servers whose run was killed; what still runs is left alone."""
    for folder in parent_folder().iterdir():
        if (folder / PID_FILE).exists() and not running(folder):
            shutil.rmtree(folder, ignore_errors=True)


def running(folder: Path) -> int | None:
    """Return the process id of the server that runs on this folder, if there is one."""
    try:
        pid = int((folder / PID_FILE).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(f"{folder}/") in command else None


def _stop(folder: Path, pid: int) -> None:
    # PostgreSQL would wait for its clients at SIGTERM.
    os.kill(pid, signal.SIGINT if folder.name.startswith("postgres") else signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while running(folder):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
