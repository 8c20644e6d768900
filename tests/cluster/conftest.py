"""The cluster of this run: its nodes, the way to its writer, and Django on that way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.db import connections

from tests.cluster.nodes import Node, nodes_from
from tests.cluster.router import Router
from tests.process.conftest import process_environment

__all__ = ["process_environment"]

KIND = os.environ.get("LEASEQUEUE_TEST_CLUSTER", "")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests at home where there is no cluster; CI has one."""
    if KIND or os.environ.get("CI", "").lower() in ("true", "1"):
        return
    for item in items:
        if "tests/cluster/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="needs a cluster: make clusters"))


@pytest.fixture(scope="session")
def nodes() -> list[Node]:
    """The three nodes, the first of them the writer."""
    assert KIND, "needs a cluster: make clusters"
    settings = connections.settings["default"]
    login = (settings["USER"], settings["PASSWORD"])
    return nodes_from(os.environ["LEASEQUEUE_TEST_NODES"], KIND, login)


@pytest.fixture(scope="session")
def router(nodes: list[Node]) -> Iterator[Router]:
    """The way to the writer, which Django and the workers take."""
    with Router(nodes) as way:
        connections.settings["default"]["PORT"] = str(way.port)
        yield way


@pytest.fixture(scope="session")
def django_db_setup(router: Router, django_db_setup: None) -> None:
    """The test database, made through the router."""


@pytest.fixture
def on_node(nodes: list[Node], database_url: str) -> Callable[[int], dict[str, str]]:
    """The environment of a process that knows one node and no router."""

    def environment(number: int) -> dict[str, str]:
        parts = urlsplit(database_url)
        login = parts.netloc.rpartition("@")[0]
        netloc = f"{login}@127.0.0.1:{nodes[number].port}"
        return {"DATABASE_URL": parts._replace(netloc=netloc).geturl()}

    return environment
