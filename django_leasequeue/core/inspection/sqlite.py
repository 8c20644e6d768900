"""SQLite, about itself."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.inspection.plan import Plan
from django_leasequeue.core.inspection.server import Column, ForeignKey, Server, rows

__all__ = ["SQLiteServer"]

_USED = re.compile(r"USING (?:COVERING )?(?:INDEX (\w+)|INTEGER (PRIMARY) KEY)")


class SQLiteServer(Server):
    """SQLite."""

    explain = "EXPLAIN QUERY PLAN "

    def read_plan(self, tag: str, columns: Sequence[str], found: Sequence[Any]) -> Plan:
        lines = [str(row[-1]) for row in found]
        used = [match for line in lines if (match := _USED.search(line))]
        return Plan(
            tag,
            frozenset(match[1] or match[2] for match in used),
            sorts=any("TEMP B-TREE" in line for line in lines),
            scans=any(line.startswith("SCAN") for line in lines),
        )

    def column_types(
        self, connection: BaseDatabaseWrapper, tables: Collection[str]
    ) -> Mapping[Column, str]:
        return {
            Column(table, row[0]): row[1]
            for table in tables
            for row in rows(connection, f"SELECT name, type FROM pragma_table_info('{table}')")
        }

    def foreign_keys(self, connection: BaseDatabaseWrapper, table: str) -> list[ForeignKey]:
        sql = (
            'SELECT m.name, f."from" FROM sqlite_master m, pragma_foreign_key_list(m.name) f '
            "WHERE m.type = 'table' AND f.\"table\" = %s ORDER BY 1, 2"
        )
        return [ForeignKey(*row) for row in rows(connection, sql, [table])]

    def read_only(self, variables: Mapping[str, str]) -> str | None:
        return "query_only" if variables["query_only"] == "1" else None

    def variables(self, connection: BaseDatabaseWrapper) -> Mapping[str, str]:
        names = ("query_only", "synchronous")
        return {name: str(rows(connection, f"PRAGMA {name}")[0][0]) for name in names}

    def weak_durability(self, variables: Mapping[str, str]) -> Mapping[str, str]:
        return {"synchronous": "OFF"} if variables["synchronous"] == "0" else {}
