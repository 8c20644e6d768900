"""Which Python interpreters are here: on PATH and under pyenv, the oldest and the newest."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.harness.problems import Problem

MINORS = (11, 12, 13, 14)
NEWEST_DJANGO_NEEDS = (3, 12)
OLDEST_DJANGO = "Django>=5.2,<6.0"
MIDDLE_DJANGO = "Django>=6.0,<6.1"
NEWEST_DJANGO = "Django>=6.1,<6.2"

_PROBE = "import sys; print(*sys.version_info[:3], sys.executable)"


@dataclass(frozen=True)
class Interpreter:
    """One Python that can run: its version and its program."""

    version: tuple[int, int, int]
    program: str

    @property
    def minor(self) -> str:
        """The version as in `python3.12`."""
        return f"{self.version[0]}.{self.version[1]}"


@dataclass(frozen=True)
class Environment:
    """An interpreter together with the Django that is tested on it."""

    name: str
    python: Interpreter
    django: str


def oldest_and_newest(only: str | None = None) -> list[Environment]:
    """Return the oldest Python with Django 5.2 and the newest Python with Django 6.1 and 6.0.

    With a single interpreter, or `only` one version as in "3.13", it serves for both, if it is
    new enough for Django 6.1; else that half is missing from the list.
    """
    found = [python for python in find_all() if only in {None, python.minor}]
    if not found:
        raise Problem(f"Python {only} is neither on PATH nor under pyenv")
    chosen = [Environment("oldest", found[0], OLDEST_DJANGO)]
    if found[-1].version >= NEWEST_DJANGO_NEEDS:
        chosen.append(Environment("newest", found[-1], NEWEST_DJANGO))
        chosen.append(Environment("middle", found[-1], MIDDLE_DJANGO))
    return chosen


def find_all() -> list[Interpreter]:
    """Return one interpreter for each supported minor version found, oldest first."""
    found: dict[str, Interpreter] = {}
    for program in _candidates():
        interpreter = _probe(program)
        if interpreter and interpreter.version[1] in MINORS:
            found.setdefault(interpreter.minor, interpreter)
    if not found:
        raise Problem(
            f"Python 3.11 or newer is needed; python3 here is {sys.version.split()[0]}. Install "
            "one beside it (a newer release of the system, pyenv install 3.13, or deadsnakes on "
            "Ubuntu) so that python3.11 ... python3.14 is on PATH or under pyenv."
        )
    return sorted(found.values(), key=lambda interpreter: interpreter.version)


def _candidates() -> Iterator[str]:
    for minor in MINORS:
        name = f"python3.{minor}"
        if on_path := shutil.which(name):
            yield on_path
        pattern = f"{_pyenv_root()}/versions/3.{minor}*/bin/{name}"
        yield from sorted(glob.glob(pattern))  # noqa: PTH207 - Path.glob raises on a closed folder
    yield sys.executable


def _pyenv_root() -> Path:
    if root := os.environ.get("PYENV_ROOT"):
        return Path(root)
    if shutil.which("pyenv"):
        answer = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return Path(answer.stdout.strip())
    return Path.home() / ".pyenv"


def _probe(program: str) -> Interpreter | None:
    # A pyenv shim may be on PATH for a version that is not switched on: it fails, and is no Python.
    try:
        answer = subprocess.run(
            [program, "-c", _PROBE], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    if answer.returncode != 0:
        return None
    major, minor, micro, executable = answer.stdout.strip().split(" ", 3)
    return Interpreter((int(major), int(minor), int(micro)), executable)
