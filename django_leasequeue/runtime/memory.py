"""The resident memory of this process."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["resident_bytes"]

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return resident memory in bytes; the peak where the system tells no more, 0 where nothing."""
    with suppress(OSError, ValueError, IndexError):
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    with suppress(ImportError):
        import resource
        import sys

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return 0
