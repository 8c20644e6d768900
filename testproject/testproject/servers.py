"""Django's settings for each kind of database.

The waits a server may impose (connecting, one network read, a row lock) are bounded well below
the lease, so that a stuck connection ends long before another worker may take its job.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

Settings = dict[str, Any]

PORTS = {"django.db.backends.mysql": "3306", "django.db.backends.postgresql": "5432"}

#: Seconds, unless the URL's query says otherwise.
CONNECT_TIMEOUT = 5
NETWORK_TIMEOUT = 10
LOCK_TIMEOUT = 3

SQL_MODE = (
    "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)


def server(
    engine: str,
    options: dict[str, str],
    *,
    host: str,
    port: str,
    name: str,
    user: str,
    password: str,
) -> Settings:
    """Return the settings of a MySQL, MariaDB or PostgreSQL database.

    `options` holds the texts of a URL's query; ImproperlyConfigured names one it does not know.
    """
    build = _mysql_options if engine.endswith("mysql") else _postgresql_options
    return {
        "ENGINE": engine,
        "HOST": host,
        "PORT": port or PORTS[engine],
        "NAME": name,
        "USER": user,
        "PASSWORD": password,
        "OPTIONS": _checked(build, options),
        "TEST": {"CHARSET": "utf8mb4"} if engine.endswith("mysql") else {},
    }


def sqlite(path: Path, options: dict[str, str]) -> Settings:
    """Return the settings of an SQLite file; `options` as for `server`."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(path),
        "OPTIONS": _checked(_sqlite_options, options),
        # Tests start worker processes, which could not see a database in memory.
        "TEST": {"NAME": str(path.with_name(f"test_{path.name}"))},
    }


def _checked(build: Callable[..., Settings], options: dict[str, str]) -> Settings:
    known = build.__kwdefaults__ or {}
    if unknown := sorted(set(options) - set(known)):
        raise ImproperlyConfigured(
            f"DATABASE_URL has the unknown option {', '.join(unknown)}. "
            f"Known for this database: {', '.join(known)}."
        )
    return build(**{key: _like(known[key], key, value) for key, value in options.items()})


def _like(default: object, name: str, value: str) -> object:
    if not isinstance(default, int):
        return value
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 3600):
        raise ImproperlyConfigured(f"DATABASE_URL: {name} must be 1 to 3600 seconds.")
    return int(value)


def _mysql_options(
    *,
    connect_timeout: int = CONNECT_TIMEOUT,
    network_timeout: int = NETWORK_TIMEOUT,
    lock_timeout: int = LOCK_TIMEOUT,
    ssl_mode: str = "",
    ssl_ca: str = "",
) -> Settings:
    options: Settings = {
        "charset": "utf8mb4",
        "connect_timeout": connect_timeout,
        "read_timeout": network_timeout,
        "write_timeout": network_timeout,
        "init_command": (
            f"SET SESSION sql_mode = '{SQL_MODE}', innodb_lock_wait_timeout = {lock_timeout}, "
            f"lock_wait_timeout = {lock_timeout + 2}"
        ),
    }
    options |= {"ssl_mode": ssl_mode} if ssl_mode else {}
    return options | ({"ssl": {"ca": ssl_ca}} if ssl_ca else {})


def _postgresql_options(
    *,
    connect_timeout: int = CONNECT_TIMEOUT,
    network_timeout: int = NETWORK_TIMEOUT,
    lock_timeout: int = LOCK_TIMEOUT,
    sslmode: str = "",
    sslrootcert: str = "",
) -> Settings:
    options: Settings = {
        "connect_timeout": connect_timeout,
        # Milliseconds that sent data may stay unacknowledged.
        "tcp_user_timeout": network_timeout * 1000,
        "options": f"-c lock_timeout={lock_timeout}s",
    }
    names = {"sslmode": sslmode, "sslrootcert": sslrootcert}
    return options | {key: value for key, value in names.items() if value}


def _sqlite_options(*, lock_timeout: int = NETWORK_TIMEOUT) -> Settings:
    return {
        # A deferred transaction that reads and then writes fails at once when another one wrote.
        "transaction_mode": "IMMEDIATE",
        "timeout": lock_timeout,
        "init_command": "PRAGMA journal_mode = WAL",
    }
