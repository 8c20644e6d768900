"""Which server a connection is to be asked as: the dialect decides."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.dialects.mysql import MariaDB, MySQL
from django_leasequeue.core.dialects.postgresql import PostgreSQL
from django_leasequeue.core.dialects.sqlite import SQLite
from django_leasequeue.core.inspection.mysql import MariaDBServer, MySQLServer
from django_leasequeue.core.inspection.postgresql import PostgreSQLServer
from django_leasequeue.core.inspection.server import Server
from django_leasequeue.core.inspection.sqlite import SQLiteServer

__all__ = ["server_for"]

_SERVERS: dict[type[Dialect], Server] = {
    MySQL: MySQLServer(),
    MariaDB: MariaDBServer(),
    PostgreSQL: PostgreSQLServer(),
    SQLite: SQLiteServer(),
}


def server_for(connection: BaseDatabaseWrapper) -> Server:
    """Return what answers for a connection's database; raises as `dialect_for` does."""
    return _SERVERS[type(dialect_for(connection))]
