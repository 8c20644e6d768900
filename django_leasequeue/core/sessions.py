"""Sessions: a connection's number on its server, and ending the statement that it waits in.

A killed process leaves its statement running, locks and all, until the server notices.
"""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Trouble, family_of, trouble
from django_leasequeue.core.transaction import tagged

__all__ = ["end_statement", "session_id"]


def session_id(connection: BaseDatabaseWrapper) -> int | None:
    """Return the server's number of this open session, without asking the server.

    None where there is no session to end: on SQLite, and while not connected.
    """
    return family_of(connection).session_id(connection)


def end_statement(connection: BaseDatabaseWrapper, session: int) -> bool:
    """Ask the server, over another connection, to end what `session` is running just now.

    Its transaction is not committed: the statement fails, and the session may go on. Returns
    whether the request was sent; it needs no right beyond the account's own sessions. Whatever
    the server refuses (no such session, another account's, no connection) is False, never raised.
    Servers use their numbers again, so ask it only of a session that was there a moment ago.
    """
    sql = family_of(connection).end_statement
    if not sql:
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute(tagged("end", sql), [session])
            row = cursor.fetchone() if cursor.description else None
    except (DatabaseError, InterfaceError) as error:
        if trouble(connection, error) is Trouble.RECONNECT:
            connection.close()  # the next statement is to find a connection that works
        return False
    return row is None or bool(row[0])
