"""Which server a connection is to be asked as: the dialect decides."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core import dialect
from django_leasequeue.core.inspection.mysql import MariaDBServer, MySQLServer
from django_leasequeue.core.inspection.postgresql import PostgreSQLServer
from django_leasequeue.core.inspection.server import Server
from django_leasequeue.core.inspection.sqlite import SQLiteServer

__all__ = ["server_for"]

_SERVERS: dict[type[dialect.Dialect], Server] = {
    dialect.MySQL: MySQLServer(),
    dialect.MariaDB: MariaDBServer(),
    dialect.PostgreSQL: PostgreSQLServer(),
    dialect.SQLite: SQLiteServer(),
}


def server_for(connection: BaseDatabaseWrapper) -> Server:
    """Return what answers for a connection's database; raises as `dialect_for` does."""
    return _SERVERS[type(dialect.dialect_for(connection))]
