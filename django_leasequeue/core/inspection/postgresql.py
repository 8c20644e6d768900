"""PostgreSQL, about itself."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

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

__all__ = ["PostgreSQLServer"]

_VARIABLES = (
    "autovacuum",
    "default_transaction_read_only",
    "fsync",
    "full_page_writes",
    "in_hot_standby",
    "lock_timeout",
    "max_connections",
    "server_encoding",
    "superuser_reserved_connections",
    "synchronous_commit",
)
_AGE = "EXTRACT(EPOCH FROM clock_timestamp() - xact_start)"


class PostgreSQLServer(Server):
    """PostgreSQL."""

    explain = "EXPLAIN (FORMAT JSON) "
    denied = frozenset({"42501"})

    def limits(self, seconds: int) -> tuple[str, ...]:
        return (f"SET statement_timeout = {seconds * 1000}", "SET lock_timeout = 1000")

    def variables(self, connection: BaseDatabaseWrapper) -> Mapping[str, str]:
        sql = "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)"
        found = dict(rows(connection, sql, [list(_VARIABLES)]))
        # Django sets its sessions' zone; this is what a session without Django has.
        zone = "SELECT reset_val FROM pg_settings WHERE name = 'TimeZone'"
        return {**found, "zone": rows(connection, zone)[0][0]}

    def read_plan(self, tag: str, columns: Sequence[str], found: Sequence[Any]) -> Plan:
        answer = found[0][0]
        nodes = list(_nodes(json.loads(answer) if isinstance(answer, str) else answer))
        kinds = [node.get("Node Type", "") for node in nodes]
        return Plan(
            tag,
            frozenset(node["Index Name"] for node in nodes if "Index Name" in node),
            sorts=any("Sort" in kind for kind in kinds),
            scans="Seq Scan" in kinds,
        )

    def isolation(self, connection: BaseDatabaseWrapper) -> str | None:
        # The driver names the level at the beginning of each transaction, if the project has one.
        question = "SHOW transaction_isolation"
        if not connection.get_autocommit():
            return str(rows(connection, question)[0][0])
        connection.set_autocommit(False)
        try:
            return str(rows(connection, question)[0][0])
        finally:
            connection.rollback()
            connection.set_autocommit(True)

    def read_only(self, variables: Mapping[str, str]) -> str | None:
        names = ("in_hot_standby", "default_transaction_read_only")
        on = [name for name in names if variables.get(name) == "on"]
        return on[0] if on else None

    def narrow_sets(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        encoding = variables["server_encoding"]
        return {} if encoding == "UTF8" else {"the database": encoding}

    def column_types(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        sql = (
            "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), o.collname "
            "FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid "
            "LEFT JOIN pg_collation o ON o.oid = a.attcollation AND o.collname <> 'default' "
            "WHERE c.relname = ANY(%s) AND pg_table_is_visible(c.oid) AND a.attnum > 0 "
            "AND NOT a.attisdropped"
        )
        return {
            Column(table, name): kind.replace("character varying", "varchar")
            + (f' COLLATE "{order}"' if order else "")
            for table, name, kind, order in rows(connection, sql, [list(tables)])
        }

    def zone(self, variables: Mapping[str, str]) -> str | None:
        return variables["zone"]

    def lock_wait(self, variables: Mapping[str, str]) -> float | None:
        return int(variables["lock_timeout"]) / 1000 or float("inf")

    def foreign_keys(self, connection: BaseDatabaseWrapper, table: str) -> list[ForeignKey]:
        sql = (
            "SELECT conrelid::regclass::text, conname FROM pg_constraint "
            "WHERE contype = 'f' AND confrelid = to_regclass(%s) AND conparentid = 0 ORDER BY 1, 2"
        )
        return [ForeignKey(*row) for row in rows(connection, sql, [table])]

    def privileges(self, connection: BaseDatabaseWrapper, table: str) -> frozenset[str] | None:
        asked = ", ".join(f"has_table_privilege(%s, '{word}')" for word in PRIVILEGES)
        answers = rows(connection, f"SELECT {asked}", [table] * len(PRIVILEGES))[0]
        return frozenset(word for word, has in zip(PRIVILEGES, answers, strict=True) if has)

    def old_transactions(
        self, connection: BaseDatabaseWrapper, seconds: float
    ) -> list[OldTransaction]:
        sql = (
            f"SELECT 'session ' || pid, {_AGE} AS age FROM pg_stat_activity "
            f"WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() AND {_AGE} >= %s "
            "AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) "
            "AND datname = current_database() AND backend_type <> 'autovacuum worker' "
            "UNION ALL SELECT 'prepared transaction ' || gid, "
            "EXTRACT(EPOCH FROM clock_timestamp() - prepared) FROM pg_prepared_xacts "
            "WHERE EXTRACT(EPOCH FROM clock_timestamp() - prepared) >= %s "
            "ORDER BY age DESC LIMIT 10"
        )
        found = [
            OldTransaction(holder, float(age))
            for holder, age in rows(connection, sql, [seconds, seconds])
        ]
        sees_all = "SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')"
        if not found and not rows(connection, sees_all)[0][0]:
            raise NotPermitted("membership in pg_read_all_stats")
        return found

    def connection_limit(
        self, connection: BaseDatabaseWrapper, variables: Mapping[str, str]
    ) -> tuple[int, str] | None:
        reserved = int(variables.get("superuser_reserved_connections", 0))
        sql = (
            "SELECT (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user), "
            "(SELECT datconnlimit FROM pg_database WHERE datname = current_database())"
        )
        role, database = rows(connection, sql)[0]
        limits = [
            (int(variables["max_connections"]) - reserved, "max_connections"),
            (role, "the role's connection limit"),
            (database, "the database's connection limit"),
        ]
        return min(limit for limit in limits if limit[0] >= 0)

    def vacuum_off(
        self,
        connection: BaseDatabaseWrapper,
        variables: Mapping[str, str],
        tables: Collection[str],
    ) -> list[str]:
        sql = (
            "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND pg_table_is_visible(oid) "
            "AND 'autovacuum_enabled=false' = ANY(reloptions) ORDER BY relname"
        )
        found = [row[0] for row in rows(connection, sql, [list(tables)])]
        return found if variables["autovacuum"] == "on" else ["the whole server", *found]

    def dead_rows(self, connection: BaseDatabaseWrapper, table: str) -> tuple[int, int] | None:
        sql = "SELECT n_dead_tup, n_live_tup FROM pg_stat_user_tables WHERE relid = to_regclass(%s)"
        found = rows(connection, sql, [table])
        return (int(found[0][0]), int(found[0][1])) if found else None

    def weak_durability(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        names = ("fsync", "full_page_writes", "synchronous_commit")
        return {name: "off" for name in names if variables.get(name) == "off"}


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
