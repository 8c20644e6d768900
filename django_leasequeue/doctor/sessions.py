"""The doctor's own sessions: they wait for nothing, and no statement of theirs takes long."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import family_of
from django_leasequeue.doctor.case import Case
from django_leasequeue.runtime.connections import open_control

__all__ = ["open_case"]

#: Seconds that a statement may take.
STATEMENT_LIMIT = 5


@contextmanager
def open_case(alias: str) -> Iterator[Case]:
    """Connect to the queue as its handlers do and as a worker does, and close both at the end.

    Raises the database's errors, and NotImplementedError for a database that is not supported.
    """
    project = connections[alias]
    if family_of(project).in_memory(project):
        yield Case(alias, project, project)  # another session would see another database
        return
    case = Case(alias, _like(project), open_control(alias, get_conf().LEASE))
    try:
        # Before the limits are set: some of them are among what is to be reported.
        case.variables  # noqa: B018
        for connection in (case.connection, case.worker):
            with connection.cursor() as cursor:
                for statement in case.server.limits(STATEMENT_LIMIT):
                    cursor.execute(statement)
        yield case
    finally:
        case.connection.close()
        case.worker.close()


def _like(project: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    settings = copy.deepcopy(project.settings_dict)
    # A pool would hand the session and its limits on to somebody else.
    settings["OPTIONS"].pop("pool", None)
    return type(project)(settings, project.alias)
