"""Where a storm rages: a database of its own, if possible on a server that may be killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from tests.harness.databases import SERVERS
from tests.harness.problems import Problem, say
from tests.harness.server import Server

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def server_of_our_own(name: str) -> Iterator[Server | None]:
    """Run a server for the block; None where its programs are missing, and for SQLite.

    Every commit is on the disk before it is acknowledged: it is going to be killed.
    """
    if name not in SERVERS:
        yield None
        return
    server = SERVERS[name](durable=True)
    try:
        server.find()
    except Problem as problem:
        say(f"no {name} of our own to kill: {problem}")
        yield None
        return
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextmanager
def database(url: str) -> Iterator[None]:
    """Make a test database at `url`, or an SQLite file, for the block.

    DATABASE_URL then names it for processes.
    """
    found = [str(ROOT), str(ROOT / "testproject"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.chaos.settings"
    os.environ["LEASEQUEUE_MIN_LEASE"] = "1"
    sys.path[:0] = found[:2]
    with TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = url or f"sqlite:///{folder}/storm.sqlite3"
        import django
        from django.db import connections
        from django.test.utils import setup_databases, teardown_databases

        django.setup()
        for settings in connections.settings.values():
            if settings["ENGINE"].endswith("sqlite3"):
                settings["TEST"]["NAME"] = f"{folder}/test.sqlite3"
        made = setup_databases(verbosity=0, interactive=False)
        try:
            os.environ["DATABASE_URL"] = _url()
            yield
        finally:
            teardown_databases(made, verbosity=0)


def _url() -> str:
    """Return the DATABASE_URL of the database that was made."""
    from django.db import connection

    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    scheme = "postgres" if connection.vendor == "postgresql" else "mysql"
    login = f"{quote(settings['USER'], safe='')}:{quote(settings['PASSWORD'], safe='')}"
    return f"{scheme}://{login}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
