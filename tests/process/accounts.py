"""An account of the database server that may SELECT, INSERT and UPDATE, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

PASSWORD = "least-Privilege-1"


@dataclass(frozen=True)
class Account:
    """How to log in: for a process, and for a driver."""

    environment: dict[str, str]
    login: dict[str, str]


_MAKE = {
    "mysql": [
        "CREATE USER {name}@'%' IDENTIFIED BY '{password}'",
        "GRANT SELECT, INSERT, UPDATE ON {database}.* TO {name}@'%'",
    ],
    "postgresql": [
        "CREATE ROLE {name} LOGIN PASSWORD '{password}'",
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {name}",
    ],
}
_DROP = {
    "mysql": ["DROP USER {name}@'%'"],
    "postgresql": ["DROP OWNED BY {name}", "DROP ROLE {name}"],
}


@contextmanager
def least_privileged(connection: BaseDatabaseWrapper) -> Iterator[Account]:
    """Make the account, yield it, and drop it."""
    settings = connection.settings_dict
    values = {
        "name": f"leasequeue_least_{os.getpid()}",
        "password": PASSWORD,
        "database": connection.ops.quote_name(settings["NAME"]),
    }
    scheme = "postgres" if connection.vendor == "postgresql" else "mysql"
    place = f"{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    _run(connection, _MAKE[connection.vendor], values)
    try:
        yield Account(
            {"DATABASE_URL": f"{scheme}://{values['name']}:{PASSWORD}@{place}"},
            {"user": values["name"], "password": PASSWORD},
        )
    finally:
        _run(connection, _DROP[connection.vendor], values)


def _run(connection: BaseDatabaseWrapper, statements: list[str], values: dict[str, str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement.format(**values))
