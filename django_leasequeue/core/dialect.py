"""The four databases: which one a connection has, and what its errors ask for.

No other module asks which database it is on.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialects.base import Dialect, Trouble
from django_leasequeue.core.dialects.mysql import MariaDB, MySQL
from django_leasequeue.core.dialects.postgresql import PostgreSQL
from django_leasequeue.core.dialects.sqlite import SQLite

__all__ = [
    "Dialect",
    "Trouble",
    "dialect_for",
    "family_of",
    "is_unknown_commit",
    "load_driver",
    "trouble",
]

_DIALECTS: dict[str, Dialect] = {
    "mysql": MySQL(),
    "mariadb": MariaDB(),
    "postgresql": PostgreSQL(),
    "sqlite": SQLite(),
}


def dialect_for(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of a connection's database.

    Raises NotImplementedError for a database that the queue does not support. MySQL and MariaDB
    share a backend and are told apart by the server's version, which is asked once: until then
    this may connect, and raise the database's error.
    """
    dialect = family_of(connection)
    if isinstance(dialect, MySQL) and getattr(connection, "mysql_is_mariadb", False):
        return _DIALECTS["mariadb"]
    return dialect


def family_of(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect as far as it is known without a server: MySQL's also for MariaDB.

    Their error codes and connection options are the same.
    """
    try:
        return _DIALECTS[connection.vendor]
    except KeyError:
        raise NotImplementedError(
            "django-leasequeue runs on MySQL, MariaDB, PostgreSQL and SQLite, "
            f"not on {connection.vendor}"
        ) from None


def load_driver(connection: BaseDatabaseWrapper) -> None:
    """Import all of a connection's driver, so that connecting imports nothing any more.

    An interrupt in a thread may end such an import, and with it the same one of other threads.
    """
    dialect = _DIALECTS.get(connection.vendor)
    backend: Any = connection
    for name in dialect.late_modules if dialect else ():
        import_module(f"{backend.Database.__name__}.{name}")


def trouble(connection: BaseDatabaseWrapper, error: BaseException) -> Trouble | None:
    """Return what a database error on `connection` asks for, None when repeating cannot help."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    return family_of(connection).trouble(error)


def is_unknown_commit(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Tell whether `error`, raised by COMMIT, leaves open what the server did."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    return family_of(connection).is_unknown_commit(error)
