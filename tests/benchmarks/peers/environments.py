"""An environment for each peer, for their pins need not agree: `.cache/bench/PEER`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import django

from tests.benchmarks.peers import Peer
from tests.benchmarks.project import ROOT

FOLDER = ROOT / ".cache" / "bench"
_STAMP = "installed.txt"
_DRIVERS = {"postgres": "psycopg[binary]", "mariadb": "mysqlclient", "mysql": "mysqlclient"}


class NotInstalled(Exception):
    """A peer cannot be had here; the text says why."""


def program(peer: Peer, kind: str) -> str:
    """Return the Python that has the peer and a driver. Raises NotInstalled."""
    if not peer.requires:
        return sys.executable
    folder = FOLDER / peer.adapter
    wanted = [*pinned(peer), _DRIVERS.get(kind, "")]
    # The settings of databases are the reports project's, which is on Django.
    wanted = [*filter(None, wanted), *([f"Django=={django.get_version()}"] * peer.django)]
    stamp, python = folder / _STAMP, str(folder / "bin" / "python")
    known = stamp.read_text().splitlines() if stamp.exists() else []
    if not set(wanted) <= set(known):
        if not folder.exists():
            _run(sys.executable, "-m", "venv", str(folder))
        _run(python, "-m", "pip", "install", "-q", *wanted)
        stamp.write_text("\n".join(sorted({*known, *wanted})))
    return python


def pinned(peer: Peer) -> list[str]:
    """Return what the project's extra `bench` pins for a peer."""
    by_name = {re.split(r"[\[=]", pin)[0]: pin for pin in pins()}
    return [by_name[name] for name in peer.requires]


def pins() -> list[str]:
    """Return the project's extra `bench`."""
    settings = tomllib.loads(Path(ROOT, "pyproject.toml").read_text(encoding="utf-8"))
    extra: list[str] = settings["project"]["optional-dependencies"]["bench"]
    return extra


def _run(*command: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        words = (answer.stderr or answer.stdout).strip().splitlines()
        raise NotInstalled(words[-1] if words else f"{command} ended with {answer.returncode}")
