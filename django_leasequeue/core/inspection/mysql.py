"""MySQL and MariaDB, about themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.inspection.plan import Plan
from django_leasequeue.core.inspection.server import (
    PRIVILEGES,
    Column,
    ForeignKey,
    NotPermitted,
    OldTransaction,
    Server,
    rows,
)
from django_leasequeue.core.transaction import marks

__all__ = ["MariaDBServer", "MySQLServer"]

_VARIABLES = (
    "binlog_format",
    "character_set_connection",
    "character_set_database",
    "default_storage_engine",
    "innodb_flush_log_at_trx_commit",
    "innodb_lock_wait_timeout",
    "innodb_read_only",
    "log_bin",
    "max_connections",
    "max_user_connections",
    "read_only",
    "sql_mode",
    "sync_binlog",
    "system_time_zone",
    "time_zone",
    "transaction_isolation",
    "tx_isolation",
)
_ALL_TEXT = "utf8mb4"
#: A row that cannot exist, twice: a single constant key would be looked up while planning.
_NO_ROW = "WHERE id IN (-1, -2)"
#: Explaining a statement asks for the privileges of running it, roles and all.
_TRIALS = {
    "SELECT": f"SELECT id FROM {{}} {_NO_ROW}",
    "INSERT": "INSERT INTO {} (id) VALUES (-1)",
    "UPDATE": f"UPDATE {{}} SET id = id {_NO_ROW}",
    "DELETE": f"DELETE FROM {{}} {_NO_ROW}",
}


class MySQLServer(Server):
    """MySQL."""

    explain = "EXPLAIN FORMAT=TRADITIONAL "
    engine = "InnoDB"
    denied = frozenset({1044, 1142, 1143, 1227})

    def limits(self, seconds: int) -> tuple[str, ...]:
        waits = "lock_wait_timeout = 1, innodb_lock_wait_timeout = 1"
        return (f"SET SESSION {self._statement_limit(seconds)}, {waits}",)

    def _statement_limit(self, seconds: int) -> str:
        return f"max_execution_time = {seconds * 1000}"

    def variables(self, connection: BaseDatabaseWrapper) -> Mapping[str, str]:
        sql = f"SHOW SESSION VARIABLES WHERE Variable_name IN ({marks(_VARIABLES)})"
        return {name: str(value) for name, value in rows(connection, sql, _VARIABLES)}

    def read_plan(self, tag: str, columns: Sequence[str], found: Sequence[Any]) -> Plan:
        steps = [dict(zip(columns, row, strict=True)) for row in found]
        extras = " ".join(str(step["Extra"]) for step in steps)
        return Plan(
            tag,
            frozenset(step["key"] for step in steps if step["key"]),
            sorts="Using filesort" in extras or "Using temporary" in extras,
            scans=any(step["type"] in ("ALL", "index") for step in steps),
        )

    def default_engine(self, variables: Mapping[str, str]) -> str | None:
        return variables.get("default_storage_engine")

    def engines(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[str, str]:
        sql = "SELECT table_name, engine FROM information_schema.tables WHERE " + _ours(tables)
        return {table: engine or "none" for table, engine in rows(connection, sql, [*tables])}

    def isolation(self, connection: BaseDatabaseWrapper) -> str | None:
        found = self.variables(connection)
        level = found.get("transaction_isolation") or found.get("tx_isolation") or ""
        return level.lower().replace("-", " ")

    def refused_log_format(self, variables: Mapping[str, str]) -> str | None:
        logs = variables.get("log_bin") == "ON"
        return "STATEMENT" if logs and variables.get("binlog_format") == "STATEMENT" else None

    def read_only(self, variables: Mapping[str, str]) -> str | None:
        names = ("read_only", "innodb_read_only")
        # MariaDB 12 has words for the ways of being read_only.
        on = [name for name in names if variables.get(name, "OFF") not in ("OFF", "0")]
        return on[0] if on else None

    def narrow_sets(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        sets = {
            "the database": variables.get("character_set_database", _ALL_TEXT),
            "the connection": variables.get("character_set_connection", _ALL_TEXT),
        }
        return {what: name for what, name in sets.items() if name != _ALL_TEXT}

    def column_sets(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        sql = (
            "SELECT table_name, column_name, character_set_name FROM information_schema.columns "
            f"WHERE {_ours(tables)} AND character_set_name <> '{_ALL_TEXT}'"
        )
        return {Column(table, name): kind for table, name, kind in rows(connection, sql, [*tables])}

    def column_types(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        sql = (
            "SELECT table_name, column_name, column_type, character_set_name, collation_name "
            f"FROM information_schema.columns WHERE {_ours(tables)}"
        )
        return {
            Column(table, name): f"{_text(kind)} CHARACTER SET {text} COLLATE {order}"
            if text
            else _text(kind)
            for table, name, kind, text, order in rows(connection, sql, [*tables])
        }

    def modes(self, variables: Mapping[str, str]) -> frozenset[str] | None:
        return frozenset(variables.get("sql_mode", "").split(","))

    def zone(self, variables: Mapping[str, str]) -> str | None:
        zone = variables.get("time_zone", "SYSTEM")
        return variables.get("system_time_zone") if zone == "SYSTEM" else zone

    def knows_zones(self, connection: BaseDatabaseWrapper) -> bool:
        sql = "SELECT CONVERT_TZ('2000-01-01 00:00', 'UTC', 'Europe/Paris') IS NOT NULL"
        return bool(rows(connection, sql)[0][0])

    def lock_wait(self, variables: Mapping[str, str]) -> float | None:
        return float(variables["innodb_lock_wait_timeout"])

    def foreign_keys(self, connection: BaseDatabaseWrapper, table: str) -> list[ForeignKey]:
        sql = (
            "SELECT DISTINCT table_name, constraint_name FROM information_schema.key_column_usage "
            "WHERE referenced_table_schema = DATABASE() AND referenced_table_name = %s "
            "ORDER BY table_name, constraint_name"
        )
        return [ForeignKey(*row) for row in rows(connection, sql, [table])]

    def privileges(self, connection: BaseDatabaseWrapper, table: str) -> frozenset[str] | None:
        return frozenset(word for word in PRIVILEGES if self._may(connection, _TRIALS[word], table))

    def _may(self, connection: BaseDatabaseWrapper, sql: str, table: str) -> bool:
        try:
            rows(connection, self.explain + sql.format(table))
        except DatabaseError as error:
            if not self.is_denied(connection, error):
                raise
            return False
        return True

    def old_transactions(
        self, connection: BaseDatabaseWrapper, seconds: float
    ) -> list[OldTransaction]:
        # trx_started is in the server's zone, whatever the session's may be.
        age = "TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM'))"
        sql = (
            f"SELECT trx_mysql_thread_id, {age} FROM information_schema.innodb_trx "
            f"WHERE {age} >= %s AND trx_mysql_thread_id <> CONNECTION_ID() "
            "ORDER BY trx_started LIMIT 10"
        )
        try:
            found = rows(connection, sql, [seconds])
        except DatabaseError as error:
            if not self.is_denied(connection, error):
                raise
            raise NotPermitted("the PROCESS privilege") from None
        return [OldTransaction(f"session {session}", float(age)) for session, age in found]

    def connection_limit(
        self, connection: BaseDatabaseWrapper, variables: Mapping[str, str]
    ) -> tuple[int, str] | None:
        limits = [
            (int(variables.get(name, 0)), name)
            for name in ("max_connections", "max_user_connections")
        ]
        return min((limit for limit in limits if limit[0] > 0), default=None)

    def weak_durability(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        wanted = {"innodb_flush_log_at_trx_commit": "1"}
        if variables.get("log_bin") == "ON":
            wanted["sync_binlog"] = "1"
        return {
            name: variables[name]
            for name, value in wanted.items()
            if variables.get(name, value) != value
        }


class MariaDBServer(MySQLServer):
    """MariaDB."""

    def _statement_limit(self, seconds: int) -> str:
        return f"max_statement_time = {seconds}"


def _ours(tables: Collection[str]) -> str:
    return f"table_schema = DATABASE() AND table_name IN ({marks(list(tables))})"


def _text(value: Any) -> str:
    """Return a text that the server may send as bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
