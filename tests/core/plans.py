"""How a server means to run the queue's own statements, and how many rows it really reads.

Every statement of the queue is explained where it is sent, with its own parameters, inside its
own transaction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

_OURS = re.compile(r"/\* leasequeue:(\w+) \*/ (\w+)")
_VERBS = ("SELECT", "UPDATE", "INSERT", "WITH")
#: Such an INSERT reads no table.
_FROM_PARAMETERS = re.compile(r" VALUES |FROM json_to_recordset\(")


@dataclass
class Plan:
    """What a server says about one statement; `reads` is None where only a run would tell."""

    tag: str
    sql: str
    raw: Any
    indexes: set[str] = field(default_factory=set)
    sorts: bool = False
    scans: bool = False
    reads: int | None = None

    def __str__(self) -> str:
        return f"{self.sql}\n{self.raw}\nreads: {self.reads}"


@contextmanager
def explained(
    connection: BaseDatabaseWrapper, pattern: re.Pattern[str] = _OURS
) -> Iterator[list[Plan]]:
    """Collect the plan of every statement of the queue that this connection sends meanwhile.

    Another pattern finds others: its groups are a tag, or none, and the statement's first word.
    """
    plans: list[Plan] = []
    explain = _EXPLAINERS[connection.vendor]
    if connection.vendor == "mysql" and not getattr(connection, "mysql_is_mariadb", False):
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION explain_json_format_version = 1")

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        ours = pattern.match(sql)
        if not ours or ours[2] not in _VERBS or _FROM_PARAMETERS.search(sql):
            return execute(sql, params, many, context)
        plan = Plan(ours[1] or "", sql, None)
        plans.append(plan)
        with connection.cursor() as cursor:
            # A token's bytes would break the JSON that MariaDB answers with.
            explain(plan, cursor, [b"?" if isinstance(p, bytes) else p for p in params or ()])
            before = _row_reads(cursor)
        result = execute(sql, params, many, context)
        with connection.cursor() as cursor:
            plan.reads = _reads_since(cursor, before, plan.reads)
        return result

    with connection.execute_wrapper(watch):
        yield plans


def _mysql(plan: Plan, cursor: Any, params: Any) -> None:
    cursor.execute(f"EXPLAIN FORMAT=JSON {plan.sql}", params)
    plan.raw = json.loads(cursor.fetchone()[0])
    for node in _nodes(plan.raw):
        plan.sorts |= bool(node.get("using_filesort") or node.get("using_temporary_table"))
        plan.sorts |= "filesort" in node or "temporary_table" in node
        if "access_type" in node and not node.get("insert"):
            plan.indexes.add(_name(node.get("key", "")))
            plan.scans |= node["access_type"] in ("ALL", "index") and not _ends_at_once(plan)


def _postgresql(plan: Plan, cursor: Any, params: Any) -> None:
    analyze = plan.sql.split("*/ ")[-1].startswith("SELECT")  # it has no effect but its locks
    options = "ANALYZE, TIMING OFF, FORMAT JSON" if analyze else "FORMAT JSON"
    cursor.execute(f"EXPLAIN ({options}) {plan.sql}", params)
    (found,) = cursor.fetchone()
    plan.raw = json.loads(found) if isinstance(found, str) else found
    for node in _nodes(plan.raw):
        kind = node.get("Node Type", "")
        plan.sorts |= "Sort" in kind
        plan.scans |= kind == "Seq Scan"
        if "Index Name" in node:
            plan.indexes.add(_name(node["Index Name"]))
        if analyze and "Scan" in kind:
            removed = node.get("Rows Removed by Filter", 0) + node.get("Actual Rows", 0)
            plan.reads = (plan.reads or 0) + int(removed * node.get("Actual Loops", 1))


def _sqlite(plan: Plan, cursor: Any, params: Any) -> None:
    cursor.execute(f"EXPLAIN QUERY PLAN {plan.sql}", params)
    plan.raw = [row[3] for row in cursor.fetchall()]
    for line in plan.raw:
        plan.sorts |= "TEMP B-TREE" in line
        plan.scans |= line.startswith("SCAN leasequeue") and not (
            "COVERING INDEX" in line and _ends_at_once(plan)
        )
        if used := re.search(r"USING (?:COVERING )?(?:INDEX (\w+)|INTEGER (PRIMARY) KEY)", line):
            plan.indexes.add(_name(used[1] or used[2]))


#: How SQLite calls the indexes of unique constraints, in the order of their tables' definitions.
_SQLITE_NAMES = {
    "sqlite_autoindex_leasequeue_job_1": "leasequeue_job_key",
    "sqlite_autoindex_leasequeue_job_2": "leasequeue_job_live",
    "sqlite_autoindex_leasequeue_jobattempt_1": "leasequeue_attempt_number",
    "sqlite_autoindex_leasequeue_jobattempt_2": "leasequeue_attempt_token",
    "sqlite_autoindex_leasequeue_jobeffect_1": "leasequeue_effect_name",
    "sqlite_autoindex_leasequeue_queue_1": "leasequeue_queue_name",
}
_UNIQUE_NAME = re.compile(r"^(?:leasequeue_queue_name_.*|name)$")

_EXPLAINERS = {"mysql": _mysql, "postgresql": _postgresql, "sqlite": _sqlite}


def _name(index: str) -> str:
    """Return the name that the queue's own SQL and these tests call an index by."""
    if index.endswith("_pkey"):
        return "PRIMARY"
    return _SQLITE_NAMES.get(index, _UNIQUE_NAME.sub("leasequeue_queue_name", index))


def _ends_at_once(plan: Plan) -> bool:
    """Tell whether a walk over a whole index stops at its first entry."""
    return "WHERE" not in plan.sql and plan.sql.endswith("LIMIT 1")


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)


def _row_reads(cursor: Any) -> int | None:
    """Return how many rows the storage engine has read for this session (MySQL and MariaDB)."""
    if cursor.db.vendor != "mysql":
        return None
    cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%%'")
    return sum(int(value) for _name, value in cursor.fetchall())


def _reads_since(cursor: Any, before: int | None, otherwise: int | None) -> int | None:
    if before is None:
        return otherwise
    now = _row_reads(cursor)
    own = (_row_reads(cursor) or 0) - (now or 0)  # what asking costs
    return max(0, (now or 0) - before - own)
