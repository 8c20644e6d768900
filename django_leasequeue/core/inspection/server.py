"""What can be asked of every server; each server's own class answers it.

What does not exist on a server is answered by "nothing": None, or an empty collection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.inspection.plan import Plan

__all__ = ["Column", "ForeignKey", "NotPermitted", "OldTransaction", "Server", "rows"]

#: Privileges that are asked about.
PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE")


class NotPermitted(Exception):
    """The account may not see it; the text names what it lacks."""


class Column(NamedTuple):
    """A column of a table."""

    table: str
    name: str


class ForeignKey(NamedTuple):
    """A foreign key constraint of another table to one of the queue's."""

    table: str
    name: str


class OldTransaction(NamedTuple):
    """What keeps old row versions alive: a session's number or a name, and since how long."""

    holder: str
    seconds: float


def rows(connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any] = ()) -> list[Any]:
    """Return the rows of one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        found: list[Any] = list(cursor.fetchall())
        return found


class Server:
    """A kind of server. Methods raise the database's errors, and NotPermitted."""

    #: What stands before a statement so that the server only tells how it would run it.
    explain: ClassVar[str] = "EXPLAIN "
    #: The only table engine with transactions and row locks; None: there is nothing to choose.
    engine: ClassVar[str | None] = None
    #: Codes of "your account may not".
    denied: ClassVar[frozenset[Any]] = frozenset()

    def limits(self, seconds: int) -> tuple[str, ...]:
        """Return statements after which no statement of the session takes longer, or waits."""
        return ()

    def variables(self, connection: BaseDatabaseWrapper) -> Mapping[str, str]:
        """Return the settings of the session and the server that the queue cares about."""
        return {}

    def read_plan(self, tag: str, columns: Sequence[str], found: Sequence[Any]) -> Plan:
        """Return what the answer to `explain` says."""
        raise NotImplementedError

    def default_engine(self, variables: Mapping[str, str]) -> str | None:
        """Return the engine that a new table gets."""
        return None

    def engines(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[str, str]:
        """Return the engine of each of these tables that exists."""
        return {}

    def isolation(self, connection: BaseDatabaseWrapper) -> str | None:
        """Return the isolation level of the session's transactions, in lower case."""
        return None

    def refused_log_format(self, variables: Mapping[str, str]) -> str | None:
        """Return the binary log's format if it makes the server refuse the queue's writes."""
        return None

    def read_only(self, variables: Mapping[str, str]) -> str | None:
        """Return what makes this server, or this session, refuse writes."""
        return None

    def narrow_sets(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the character sets that cannot hold every text: of what, and which."""
        return {}

    def column_sets(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        """Return the character sets of text columns that cannot hold every text."""
        return {}

    def column_types(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        """Return the types of columns as the dialect writes them."""
        return {}

    def modes(self, variables: Mapping[str, str]) -> frozenset[str] | None:
        """Return the modes in which the server reads SQL and values."""
        return None

    def zone(self, variables: Mapping[str, str]) -> str | None:
        """Return the time zone of sessions that choose none."""
        return None

    def knows_zones(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether the server can convert times between named zones."""
        return True

    def lock_wait(self, variables: Mapping[str, str]) -> float | None:
        """Return how many seconds a session waits for a row lock; infinite: without end."""
        return None

    def foreign_keys(self, connection: BaseDatabaseWrapper, table: str) -> list[ForeignKey]:
        """Return the constraints of other tables that refer to this one."""
        return []

    def privileges(self, connection: BaseDatabaseWrapper, table: str) -> frozenset[str] | None:
        """Return which of PRIVILEGES the account has on a table."""
        return None

    def old_transactions(
        self, connection: BaseDatabaseWrapper, seconds: float
    ) -> list[OldTransaction]:
        """Return what has kept old row versions alive for longer than `seconds`, oldest first.

        At most ten.
        """
        return []

    def connection_limit(
        self, connection: BaseDatabaseWrapper, variables: Mapping[str, str]
    ) -> tuple[int, str] | None:
        """Return how many connections the account may have, and what says so."""
        return None

    def vacuum_off(
        self,
        connection: BaseDatabaseWrapper,
        variables: Mapping[str, str],
        tables: Collection[str],
    ) -> list[str]:
        """Return where the clearing away of dead row versions is switched off."""
        return []

    def dead_rows(self, connection: BaseDatabaseWrapper, table: str) -> tuple[int, int] | None:
        """Return how many dead row versions and how many live rows a table is said to have."""
        return None

    def weak_durability(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        """Return the settings under which a server that crashes may lose what was committed."""
        return {}

    def is_denied(self, connection: BaseDatabaseWrapper, error: DatabaseError) -> bool:
        """Tell whether the server refused because of the account's privileges."""
        return dialect_for(connection).code_of(error) in self.denied
