"""`make bench`: durable private servers, and the benchmarks on one after the other."""

from __future__ import annotations

import argparse
import os
import subprocess
from contextlib import ExitStack

from tests.harness import leftovers, packages, venvs
from tests.harness.databases import Databases
from tests.harness.interpreters import find_all
from tests.harness.problems import Problem, say
from tests.harness.redis import Redis
from tests.harness.server import parent_folder
from tests.harness.tied import tied

OUTPUT = venvs.CHECKOUT / ".cache" / "bench" / "results.json"


def run(options: argparse.Namespace) -> int:
    """Run the benchmarks on each database that can be had, into one file of results.

    It replaces what the file has, or with `add` the rows of the same scenarios alone.
    """
    databases = Databases(options.databases, durable=True)
    leftovers.sweep()
    python = find_all()[-1]
    databases.prepare([python])
    extras = {"postgres"} | ({"mysql"} if {"mariadb", "mysql"} & set(databases.present) else set())
    program = venvs.ensure(venvs.CHECKOUT / ".venv", python, extras)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    if not options.add:
        options.output.unlink(missing_ok=True)
    codes = []
    with ExitStack() as stack:
        databases.start(stack)
        environment = {**os.environ, "BENCH_DISK": str(parent_folder()), **_redis(stack)}
        for name in databases.present:
            command = [str(program), "-m", "tests.benchmarks", "run", "--output"]
            command += [str(options.output), *options.arguments]
            url = databases.url(name, "lq_bench")
            codes.append(
                subprocess.run(
                    tied(command),
                    cwd=venvs.CHECKOUT,
                    env={**environment, "DATABASE_URL": url, "BENCH_LABEL": databases.labels[name]},
                    check=False,
                ).returncode
            )
    for name, reason in databases.missing.items():
        say(f"SKIPPED {name}: {reason}")
    say(f"results: {options.output}")
    return max(codes, default=1)


def _redis(stack: ExitStack) -> dict[str, str]:
    """Start Redis; return what names it to the benchmarks, or why there is none."""
    server = Redis(durable=True)
    try:
        packages.install(packages.missing_for("redis", []))
        server.find()
        stack.callback(server.stop)
        server.start()
    except Problem as problem:
        return {"BENCH_NO_REDIS": str(problem).splitlines()[0]}
    return {"BENCH_REDIS_URL": server.url("0")}
