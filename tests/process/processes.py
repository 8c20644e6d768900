"""Other processes of this machine, by their ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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


def listening_ports(pids: Iterable[int]) -> set[int]:
    """Return the TCP ports on which one of these processes takes connections."""
    inodes = {inode for pid in pids for inode in _sockets(pid)}
    return {port for port, inode in _listeners() if inode in inodes}


def _sockets(pid: int) -> Iterator[str]:
    """Yield the inode of each socket that the process has open."""
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", str(path.readlink()))
        except OSError:  # closed meanwhile
            continue
        if found:
            yield found[1]


def _listeners() -> Iterator[tuple[int, str]]:
    """Yield port and inode of each TCP socket of this machine that listens."""
    for path in Path("/proc/net").glob("tcp*"):
        for line in path.read_text().splitlines()[1:]:
            _number, local, _remote, state, *others = line.split()
            if state == "0A":
                yield int(local.rpartition(":")[2], 16), others[5]
