"""libfaketime: a process whose host has another clock than the database."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

#: The variant for programs with threads, where Debian's package `libfaketime` puts it.
NAME = "faketime/libfaketimeMT.so.1"


def library() -> Path | None:
    """Return where the library is, None where it is missing."""
    return next(iter(sorted(Path("/usr/lib").glob(f"*/{NAME}"))), None)


def faked(offset: str) -> dict[str, str]:
    """Return the environment of a process whose wall clock is `offset` ("+10m") from ours.

    Skips the test where the library is missing, and fails it when CI=true.
    """
    if not library():
        missing = "needs libfaketime, which Debian has as a package of that name"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    return {**environment(offset), "DJANGO_SETTINGS_MODULE": "tests.faults.faketime_settings"}


def environment(offset: str) -> dict[str, str]:
    """Return what a process with a false clock needs; its settings import faketime_settings."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME": offset,
        # How long something takes is not to change: only what o'clock it is.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # this name since 0.9.9, the other one before
        "DONT_FAKE_MONOTONIC": "1",
    }
