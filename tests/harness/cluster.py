"""Three servers on loopback that are one cluster, each a throwaway server of its own."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from tests.harness.mysql_family import MySQLFamily
from tests.harness.problems import Problem, say

NODES = 3
WHOLE_SECONDS = 60


class Cluster:
    """Its nodes, from empty folders to their ends. Subclasses know how one is formed."""

    name: str

    def __init__(self) -> None:
        self.password = secrets.token_hex(12)
        self.nodes: Sequence[MySQLFamily] = []

    def find(self) -> str:
        """Return the version of the programs found. Raises Problem when they are missing."""
        raise NotImplementedError

    def form(self) -> None:
        """Start the nodes and let them find each other."""
        raise NotImplementedError

    def start(self) -> None:
        """Start and wait until all nodes are one cluster. Raises Problem when they are not."""
        began = time.monotonic()
        self.form()
        ports = ", ".join(str(node.port) for node in self.nodes)
        say(f"{self.name} is whole on ports {ports} ({time.monotonic() - began:.1f} s)")

    def stop(self) -> None:
        """Stop all nodes and remove their data."""
        for node in reversed(self.nodes):
            node.stop()

    def variables(self) -> dict[str, str]:
        """Return what tests/cluster wants to know in its environment."""
        told = [f"{node.port}:{node.process.pid}" for node in self.nodes if node.process]
        return {
            "DATABASE_URL": self.nodes[0].url("lq_cluster"),
            "LEASEQUEUE_TEST_CLUSTER": self.name,
            "LEASEQUEUE_TEST_NODES": " ".join(told),
        }


def wait_for(what: str, node: MySQLFamily, holds: Callable[[], bool]) -> None:
    """Return once it holds. Raises Problem, with the end of the node's log, when it never does."""
    deadline = time.monotonic() + WHOLE_SECONDS
    while not holds():
        if time.monotonic() > deadline or node.process is None or node.process.poll() is not None:
            raise Problem(f"{what} failed:\n{node.tail('server')}")
        time.sleep(0.1)
