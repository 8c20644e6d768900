"""Telling idle workers of jobs that are due at once, as the setting WAKEUP says.

"nudge" tells the workers on this host after the commit; "notify" has PostgreSQL tell all workers at
the commit, for one statement in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from functools import partial

from django.db import DatabaseError, InterfaceError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.request import Request
from django_leasequeue.core.transaction import in_transaction, tagged
from django_leasequeue.nudges import folder_for, nudge

__all__ = ["ANY_QUEUE", "wake_workers"]

#: What stands for more queues than are worth a notification each.
ANY_QUEUE = "*"
_MOST = 8


def wake_workers(connection: BaseDatabaseWrapper, requests: Iterable[Request]) -> None:
    """Wake those who may be idle for these jobs, when they are committed, if they are due then.

    Raises the database's errors inside the caller's transaction, which "notify" is a part of.
    """
    how = get_conf().WAKEUP
    if how == "poll":
        return
    queues = {request.queue for request in requests if _is_due(request)}
    if len(queues) > _MOST:
        queues = {ANY_QUEUE}
    if queues and how == "notify":
        _notify(connection, queues)
    elif queues:
        _nudge(connection, queues)


def _is_due(request: Request) -> bool:
    match request.available:
        case None:
            return True
        case datetime():
            return request.available <= datetime.now(UTC)
        case seconds:
            return seconds <= 0


def _notify(connection: BaseDatabaseWrapper, queues: Collection[str]) -> None:
    dialect = dialect_for(connection)
    if not dialect.notify:
        return  # a check says so
    call = ", ".join([dialect.notify] * len(queues))
    try:
        with connection.cursor() as cursor:
            cursor.execute(tagged("notify", f"SELECT {call}"), list(queues))
    except (DatabaseError, InterfaceError):
        if in_transaction(connection):
            raise
        connection.close()  # the jobs are committed, and the next statement finds a new session


def _nudge(connection: BaseDatabaseWrapper, queues: Collection[str]) -> None:
    if not connection.in_atomic_block and in_transaction(connection):
        return  # nobody tells when a transaction begun by hand commits
    folder = folder_for(str(connection.settings_dict["NAME"]), get_conf().NUDGE_FOLDER)
    transaction.on_commit(partial(nudge, folder, queues), using=connection.alias, robust=True)
