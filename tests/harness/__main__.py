"""The command line of make: test, clusters, package, soak, chaos, bench, bench-admin, servers."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from tests.harness import bench, chaos, clusters, leftovers, package, suite, venvs
from tests.harness.databases import NAMES, Databases, variable
from tests.harness.interpreters import Environment, find_all, oldest_and_newest
from tests.harness.problems import Problem, say
from tests.harness.tied import tied

IN_CI = os.environ.get("CI", "").lower() in {"true", "1"}
PYTHONS = ("oldest", "newest", "middle")
#: Long, and left to one of two Pythons on each database.
PROCESSES = ("tests/process", "tests/browser", "tests/sweep", "tests/model")
#: The same on each of them: once with each Python.
WITHOUT_A_DATABASE = ("tests/typing", "tests/unit")
#: What needs three servers that are one, and is run by another verb.
OF_CLUSTERS = ("tests/cluster",)
#: Where Django 6.0 is another framework than 6.1 and the backport; whole if asked for alone.
OF_THE_MIDDLE = ("tests/backend", "tests/testing")


def main() -> int:
    """Run one verb and return its exit code."""
    signal.signal(signal.SIGTERM, _terminated)
    options = _parser().parse_args()
    try:
        code: int = options.verb(options)
    except Problem as problem:
        say(f"ERROR: {problem}")
        return 1
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m tests.harness", description=__doc__)
    verbs = parser.add_subparsers(required=True)

    test = verbs.add_parser("test", help="run the suite on databases and Pythons")
    test.add_argument("--databases", type=_words(NAMES), default=list(NAMES))
    test.add_argument("--pythons", type=_words(PYTHONS), default=list(PYTHONS))
    test.add_argument("--only-python", metavar="3.N", help="use no other interpreter")
    test.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    test.set_defaults(verb=_test)

    cluster = verbs.add_parser("clusters", help="run tests/cluster on clusters of three nodes")
    cluster.add_argument(
        "--clusters", type=_words([*clusters.CLUSTERS]), default=[*clusters.CLUSTERS]
    )
    cluster.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    cluster.set_defaults(verb=clusters.run)

    built = verbs.add_parser("package", help="build wheel and sdist, and try both")
    built.add_argument("--only-python", metavar="3.N", help="use no other interpreter")
    built.add_argument("--tag", help="the tag of a release that this is to be, as in v1.0.0")
    built.set_defaults(verb=package.make)

    soak = verbs.add_parser("soak", help="run a worker for long and see whether it grows")
    soak.add_argument("--jobs", type=int, default=100_000)
    soak.set_defaults(verb=_soak)

    storm = verbs.add_parser("chaos", help="kill workers, children and servers, and count")
    storm.add_argument("--databases", type=_words(NAMES), default=list(NAMES))
    storm.add_argument("--seconds", default="600")
    storm.add_argument("--jobs", default="10000")
    storm.add_argument("--seed", default="")
    storm.set_defaults(verb=chaos.run)

    run = verbs.add_parser("bench", help="run the benchmarks on durable private servers")
    run.add_argument("--databases", type=_words(NAMES), default=list(NAMES))
    run.add_argument("--output", type=Path, default=bench.OUTPUT)
    run.add_argument("--add", action="store_true", help="keep the rows of other scenarios")
    run.add_argument("arguments", nargs="*", help="for tests.benchmarks, after --")
    run.set_defaults(verb=bench.run)
    pages = verbs.add_parser("bench-admin", help="ask for each page of the admin on a full table")
    pages.add_argument("--rows", type=int, default=1_000_000)
    pages.add_argument("--queues", type=int, default=8)
    pages.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    pages.set_defaults(verb=_bench_admin)

    venv = verbs.add_parser("venv", help="make or renew .venv, with the newest Python")
    venv.add_argument("--extras", type=_words(None), default=[])
    venv.set_defaults(verb=_venv)

    servers = verbs.add_parser("servers", help="servers that outlive this command")
    servers.add_argument("action", choices=["start", "stop"])
    servers.set_defaults(verb=_servers)
    return parser


class _words:  # noqa: N801 - used as a type of argparse, which shows the name
    """A comma-separated list, of known words if there are any."""

    def __init__(self, known: Sequence[str] | None) -> None:
        self.known = known

    def __call__(self, text: str) -> list[str]:
        words = [word for word in text.split(",") if word]
        if self.known and (unknown := set(words) - set(self.known)):
            raise argparse.ArgumentTypeError(f"{unknown.pop()!r} is none of {self.known}")
        return words


def _terminated(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _test(options: argparse.Namespace) -> int:
    environments = [
        item for item in oldest_and_newest(options.only_python) if item.name in options.pythons
    ]
    databases = Databases(options.databases)
    leftovers.sweep()
    databases.prepare([item.python for item in environments])
    programs = {item.name: venvs.for_tests(item, _extras(item, databases)) for item in environments}
    whole = [item for item in environments if item.name != "middle"] or environments
    shared = len(whole) > 1 and not options.pytest
    with ExitStack() as stack:
        databases.start(stack)
        runs = [
            _plan(item, programs[item.name], databases, name, not shared or (row + column) % 2 == 0)
            for row, item in enumerate(whole)
            for column, name in enumerate(databases.names)
        ]
        for item in environments:
            if item not in whole and not options.pytest:
                runs.append(_plan(item, programs[item.name], databases, databases.names[0], False))
                runs[-1].only = OF_THE_MIDDLE
        # Those with the long process tests first, so that none of them is left alone at the end.
        suite.run_all(sorted(runs, key=lambda run: len(run.left_out)), options.pytest)
    suite.print_table(runs)
    return _verdict(runs, [name for name in options.pythons if name not in programs])


def _extras(environment: Environment, databases: Databases) -> set[str]:
    extras = {"test", "postgres"}
    if {"mariadb", "mysql"} & set(databases.present):
        extras.add("mysql")
    if environment.name == "oldest":
        # Django 5.2 has no django.tasks of its own.
        extras.add("tasks")
    return extras


def _plan(
    environment: Environment,
    program: Path,
    databases: Databases,
    name: str,
    with_processes: bool,
) -> suite.Run:
    """Plan a run; the long process tests go to each database once, with one of two Pythons."""
    ask = [str(program), "-c", "import django; print(django.__version__)"]
    django = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    python = ".".join(map(str, environment.python.version))
    return suite.Run(
        title=f"Python {python} Django {django} {name}",
        columns=(python, django, databases.labels.get(name, name)),
        program=program,
        url="" if name in databases.missing else databases.url(name, f"lq_{environment.name}"),
        skipped=databases.missing.get(name, ""),
        left_out=(
            *OF_CLUSTERS,
            *(() if with_processes else PROCESSES),
            *(() if name == "sqlite" else WITHOUT_A_DATABASE),
        ),
    )


def _verdict(runs: list[suite.Run], unavailable: list[str]) -> int:
    if unavailable:
        say("SKIPPED Django 6.1: it needs Python 3.12 or newer, and there is none here")
    skipped = bool(unavailable) or any(run.skipped for run in runs)
    if skipped and IN_CI:
        say("CI=true: what is skipped above counts as failed")
    failed = any(run.state == "FAILED" for run in runs)
    return 1 if failed or (skipped and IN_CI) else 0


def _soak(options: argparse.Namespace) -> int:
    return _measured(["tests.soak", "--jobs", str(options.jobs)], ["mariadb"])


def _bench_admin(options: argparse.Namespace) -> int:
    command = ["tests.bench_admin", "--rows", str(options.rows), "--queues", str(options.queues)]
    return _measured(command + ["--json"] * options.json, ["mariadb", "postgres"])


def _measured(command: Sequence[str], names: Sequence[str]) -> int:
    """Run a module on each of these databases, or on the DATABASE_URL's; return the worst code."""
    if url := os.environ.get("DATABASE_URL", ""):
        return _run_module(command, url)
    databases = Databases(names)
    leftovers.sweep()
    databases.prepare(find_all()[-1:])
    with ExitStack() as stack:
        databases.start(stack)
        for reason in databases.missing.values():
            raise Problem(reason)
        return max([_run_module(command, databases.url(name, "lq_measured")) for name in names])


def _run_module(command: Sequence[str], url: str) -> int:
    extra = "postgres" if url.startswith("postgres") else "mysql"
    program = venvs.ensure(venvs.CHECKOUT / ".venv", find_all()[-1], {extra})
    environment = {**os.environ, "DATABASE_URL": url}
    whole = tied([str(program), "-m", *command])
    return subprocess.run(whole, cwd=venvs.CHECKOUT, env=environment, check=False).returncode


def _venv(options: argparse.Namespace) -> int:
    venvs.ensure(venvs.CHECKOUT / ".venv", find_all()[-1], set(options.extras))
    return 0


def _servers(options: argparse.Namespace) -> int:
    leftovers.stop_all()
    if options.action == "start":
        databases = Databases(NAMES[1:])
        databases.prepare(find_all()[-1:])
        with ExitStack() as stack:
            databases.start(stack, keep=True)
        for name, reason in databases.missing.items():
            say(f"SKIPPED {name}: {reason}")
        for name in databases.present:
            print(f"export {variable(name)}={databases.url(name, 'leasequeue')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
