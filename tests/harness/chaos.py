"""`make chaos`: the kill storm on one database after the other, each with a server of its own."""

from __future__ import annotations

import argparse
import subprocess

from tests.harness import leftovers, packages, venvs
from tests.harness.databases import external_url
from tests.harness.interpreters import find_all
from tests.harness.tied import tied


def run(options: argparse.Namespace) -> int:
    """Run a storm on each database; return the worst code. Raises Problem for what is missing."""
    leftovers.sweep()
    python = find_all()[-1]
    for name in options.databases:
        packages.install(packages.missing_for(name, [python]))
    extras = {"test", "postgres"}
    if {"mariadb", "mysql"} & set(options.databases):
        extras.add("mysql")
    program = venvs.ensure(venvs.CHECKOUT / ".venv", python, extras)
    codes = []
    for name in options.databases:
        command = [str(program), "-m", "tests.chaos", name, "--seconds", options.seconds]
        command += ["--jobs", options.jobs, "--seed", options.seed]
        command += ["--url", external_url(name) or ""]
        codes.append(subprocess.run(tied(command), cwd=venvs.CHECKOUT, check=False).returncode)
    return max(codes)
