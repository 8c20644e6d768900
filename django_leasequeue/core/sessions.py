"""Sessions: a connection's number on its server, ending the statement or the wait that it is in.

A killed process leaves its statement running, locks and all, until the server notices.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Trouble, family_of, trouble
from django_leasequeue.core.transaction import tagged

__all__ = ["end_statement", "session_id", "shut", "wire_of"]


def session_id(connection: BaseDatabaseWrapper) -> int | None:
    """Return the server's number of this open session, without asking the server.

    None where there is no session to end: on SQLite, and while not connected.
    """
    return family_of(connection).session_id(connection)


def wire_of(connection: BaseDatabaseWrapper) -> int | None:
    """Return a descriptor of one's own for the socket of an open connection; the caller closes it.

    None where there is no server, and while not connected. To be called where the connection is
    used: mysqlclient answers no other thread while one waits.
    """
    number = family_of(connection).descriptor(connection)
    return None if number is None else os.dup(number)


def shut(wire: int) -> None:
    """End a connection from this side, from any thread: who waits for its answer gets an error.

    The error is the driver's for a lost connection.
    """
    end = socket.socket(fileno=wire)
    with suppress(OSError):  # it has ended already
        end.shutdown(socket.SHUT_RDWR)
    end.detach()


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
