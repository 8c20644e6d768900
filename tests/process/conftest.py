"""Fixtures of the process tests: every process gets the handlers app and the short leases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.proxy import Proxy
from tests.process.accounts import Account, least_privileged
from tests.process.gate import Gate

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def process_environment(database_url: str) -> dict[str, str]:
    """The environment of a process: these tests' settings, and leases of a second and more."""
    found = [str(ROOT), str(ROOT / "testproject"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "tests.process.settings",
        "LEASEQUEUE_MIN_LEASE": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, found)),
    }


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], Gate]:
    """A factory of gates: `gate("a")` is always the same one."""
    return lambda name: Gate(tmp_path / f"gate-{name}")


@pytest.fixture
def least_account(queue_db) -> Iterator[Account]:
    """An account with SELECT, INSERT and UPDATE alone."""
    with least_privileged(queue_db) as account:
        yield account


@pytest.fixture
def proxy(queue_db) -> Iterator[Proxy]:
    """A way to the database server that a test can cut, stall and mend."""
    settings = queue_db.settings_dict
    with Proxy((settings["HOST"], int(settings["PORT"]))) as way:
        yield way


@pytest.fixture
def by_proxy(database_url: str, proxy: Proxy) -> dict[str, str]:
    """The environment of a process that reaches the server through the proxy."""
    parts = urlsplit(database_url)
    login = parts.netloc.rpartition("@")[0]
    return {"DATABASE_URL": parts._replace(netloc=f"{login}@127.0.0.1:{proxy.port}").geturl()}
