"""Django and the test databases of a run, and how other processes reach them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def databases() -> Iterator[Path]:
    """Make the two test databases for the block, which gets a folder for its files."""
    found = [str(ROOT), str(ROOT / "testproject"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.settings"
    sys.path[:0] = found[:2]
    import django
    from django.db import connections
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    with TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        for alias, settings in connections.settings.items():
            if settings["ENGINE"].endswith("sqlite3"):
                settings["TEST"] = {**settings["TEST"], "NAME": f"{folder}/{alias}.sqlite3"}
        made = setup_databases(verbosity=0, interactive=False)
        try:
            yield Path(folder)
        finally:
            teardown_databases(made, verbosity=0)


def url_of(alias: str) -> str:
    """Return the DATABASE_URL of a database that was made for this run."""
    from django.db import connections

    connection = connections[alias]
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    scheme = "postgres" if connection.vendor == "postgresql" else "mysql"
    login = f"{quote(settings['USER'], safe='')}:{quote(settings['PASSWORD'], safe='')}"
    return f"{scheme}://{login}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


def kind() -> str:
    """Return "sqlite", "mariadb", "mysql" or "postgres"."""
    from django.db import connection

    if connection.vendor == "mysql":
        return "mariadb" if getattr(connection, "mysql_is_mariadb", False) else "mysql"
    return {"postgresql": "postgres"}.get(connection.vendor, connection.vendor)
