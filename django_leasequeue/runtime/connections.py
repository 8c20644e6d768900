"""The worker's own database connections: bounded in every wait, apart from the handlers'."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_leasequeue.core.dialect import family_of

__all__ = ["bounds_for", "open_control"]

#: A worker that says nothing for so long in a transaction has vanished, or stands still: the server
#: ends its session, or its locks would keep rows from all others. Twice as long as the renewer, who
#: speaks more seldom than control, is ever silent: MySQL and MariaDB mean every silence.
_SILENCE = 10.0


def bounds_for(lease: float) -> dict[str, float]:
    """Return how long each kind of wait may take, in seconds, under leases of `lease` seconds.

    Seed S1's bounds, each below a quarter of the lease.
    """
    bounds = {"connect": 5.0, "network": 10.0, "row_lock": 3.0, "metadata_lock": 5.0}
    return {name: min(bound, lease / 4) for name, bound in bounds.items()}


def open_control(alias: str, lease: float, *, listens: bool = False) -> BaseDatabaseWrapper:
    """Return a new connection to `alias` for the calling thread, opened lazily.

    READ COMMITTED, autocommit, no pool, every wait bounded, one statement at a time where the
    driver can be told so (not on PostgreSQL); the session is prepared again after each reconnect;
    no statement is kept under DEBUG. One that `listens` hears the server's notifications, where it
    has some. The caller closes it.
    """
    project = connections[alias]
    bounds = bounds_for(lease)
    dialect = family_of(project)
    settings = copy.deepcopy(project.settings_dict)
    settings.update(CONN_MAX_AGE=None, CONN_HEALTH_CHECKS=False, AUTOCOMMIT=True)
    settings["OPTIONS"] = dialect.control_options(settings["OPTIONS"], bounds)
    connection = type(project)(settings, alias)
    connection.queries_log = deque(maxlen=0)
    listen = (dialect.listen,) if listens else ()
    vars(connection)["leasequeue_session"] = (*dialect.control_session(bounds, _SILENCE), *listen)
    dialect.bound_waits(connection, bounds)
    return connection


def _prepare(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    statements = getattr(connection, "leasequeue_session", ())
    if statements:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)


connection_created.connect(_prepare, dispatch_uid="leasequeue_control")
