"""Other processes of this machine, by their ids."""

from __future__ import annotations

import re
from pathlib import Path

from tests.waiting import wait_until


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is not collected yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def wait_gone(pid: int, timeout: float = 10) -> None:
    """Return once the process has ended."""
    wait_until(lambda: not is_alive(pid), timeout=timeout, message=f"process {pid} still runs")


def descendants(pid: int) -> set[int]:
    """Return the ids of the process's children, of theirs, and so on."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = re.search(r"^PPid:\t(\d+)", status.read_text(), re.MULTILINE)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent and int(parent[1]) == pid:
            found |= {int(status.parent.name)}
    return found.union(*(descendants(child) for child in found))
