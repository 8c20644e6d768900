"""Listening to PostgreSQL's notifications on a session that does other things as well."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import family_of

__all__ = ["Listening", "can_listen"]


def can_listen(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether there is anything to hear on this alias; asks no server."""
    return bool(family_of(connection).listen) and find_spec("psycopg") is not None


class Listening:
    """The notifications that come to a connection's session, whichever that is at present.

    The session has to LISTEN: see `Dialect.listen`. Needs psycopg 3.
    """

    def __init__(self) -> None:
        self._session: Any = None
        self._lost: Any = None
        self._heard: set[str] = set()

    def fileno(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return what is readable when there is something new; None without a session."""
        session: Any = connection.connection
        if session is None or session.closed or session is self._lost:
            return None
        if session is not self._session:
            session.add_notify_handler(lambda note: self._heard.add(note.payload))
            self._session = session
        return int(session.fileno())

    def read(self, connection: BaseDatabaseWrapper) -> set[str]:
        """Return the payloads that have come since the last call; asks the server nothing.

        Those that came beside the answer to another statement are among them. A session that is
        lost says nothing here: the next statement tells.
        """
        if self.fileno(connection) is not None:
            self._consume(self._session.pgconn)
        heard, self._heard = self._heard, set()
        return heard

    def _consume(self, pgconn: Any) -> None:
        from psycopg import OperationalError  # an extra

        try:
            pgconn.consume_input()
        except OperationalError:
            self._lost = self._session  # it would be readable for good
            return
        while note := pgconn.notifies():
            self._heard.add(note.extra.decode(errors="replace"))
