"""Running tests/cluster: once on each cluster, which is started for it and ended after it."""

from __future__ import annotations

import argparse
import os
import subprocess

from tests.harness import leftovers, packages, venvs
from tests.harness.cluster import Cluster
from tests.harness.galera import Galera
from tests.harness.group_replication import GroupReplication
from tests.harness.interpreters import find_all
from tests.harness.problems import Problem, say
from tests.harness.tied import tied

CLUSTERS: dict[str, type[Cluster]] = {"galera": Galera, "group-replication": GroupReplication}


def run(options: argparse.Namespace) -> int:
    """Run the tests on each chosen cluster and return the worst exit code; CI lacks none."""
    leftovers.sweep()
    pythons = find_all()[-1:]
    names: list[str] = options.clusters
    missing = [name for each in names for name in packages.missing_for(each, pythons)]
    packages.install(list(dict.fromkeys(missing)))
    program = venvs.ensure(venvs.CHECKOUT / ".venv", pythons[0], {"test", "mysql"})
    return max([_run(CLUSTERS[name](), str(program), options.pytest) for name in names])


def _run(cluster: Cluster, program: str, arguments: list[str]) -> int:
    command = tied([program, "-m", "pytest", "tests/cluster", *arguments])
    try:
        say(f"{cluster.name}, {cluster.find()}")
        cluster.start()
        environment = {**os.environ, **cluster.variables()}
        return subprocess.run(command, cwd=venvs.CHECKOUT, env=environment, check=False).returncode
    except Problem as problem:
        say(f"{cluster.name}: {problem}")
        return 1
    finally:
        cluster.stop()
