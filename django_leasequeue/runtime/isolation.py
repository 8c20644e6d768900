"""Between two jobs: the handlers' connections are clean, whatever the last handler did."""

from __future__ import annotations

import logging

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.events import log_event

__all__ = ["freshen_connections", "left_open"]


def freshen_connections(*, after_idle: bool) -> None:
    """Close connections that are broken or over their age, and forget logged queries.

    Django does so between requests. CONN_MAX_AGE=0 would mean a new connection for each job, so
    here it means to keep one; `after_idle` asks the server whether it is still there, because it
    may have closed it meanwhile (wait_timeout).
    """
    reset_queries()
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or connection.connection is None:
            continue
        if connection.settings_dict["CONN_MAX_AGE"] != 0:
            connection.close_if_unusable_or_obsolete()
        if connection.connection is not None and (after_idle or connection.errors_occurred):
            if connection.is_usable():
                connection.errors_occurred = False
            else:
                connection.close()


def left_open(*, irregular: bool) -> list[str]:
    """Discard connections that the handler left inside a transaction; return their aliases.

    What was not committed is rolled back. After an `irregular` end every connection is discarded:
    its session may have been changed, or a statement cut short.
    """
    found: list[str] = []
    for connection in connections.all(initialized_only=True):
        dirty = _inside_transaction(connection)
        if dirty:
            found.append(connection.alias)
        if dirty or irregular:
            _discard(connection)
    return found


def _inside_transaction(connection: BaseDatabaseWrapper) -> bool:
    if connection.in_atomic_block:
        return True
    wanted = connection.settings_dict["AUTOCOMMIT"]
    return connection.connection is not None and wanted and not connection.autocommit


def _discard(connection: BaseDatabaseWrapper) -> None:
    """Close the connection and let the next user of its alias begin with a new one."""
    alias = connection.alias
    try:
        if connection.connection is not None:
            connection.connection.close()
    except Exception as error:  # noqa: BLE001  (drivers differ; it is thrown away as broken)
        log_event("discard_failed", level=logging.DEBUG, error=type(error).__qualname__)
    del connections[alias]
