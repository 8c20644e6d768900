"""What processes use, as the kernel tells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """Resident MiB, threads and open descriptors, of one process or of several together."""

    mebibytes: float = 0.0
    threads: int = 0
    descriptors: int = 0

    @classmethod
    def of(cls, pids: list[int]) -> Self:
        """Return what they use together. Raises OSError when one has just ended."""
        each = [(_resident(pid), _count(pid, "task"), _count(pid, "fd")) for pid in pids]
        return cls(*(sum(column) for column in zip(*each, strict=True))) if each else cls()


def children_of(pid: int) -> list[int]:
    """Return the ids of the processes that this one has started, at this moment."""
    return sorted(_children(pid))


def _children(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        yield from map(int, file.read_text().split())


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / 2**20


def _count(pid: int, kind: str) -> int:
    return sum(1 for _entry in Path(f"/proc/{pid}/{kind}").iterdir())
