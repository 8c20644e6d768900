"""Whether the server can hold the queue at all: its version, its engines, its binary log."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["default_engine", "log_format", "read_only", "skip_locked", "table_engines"]

TOO_OLD = Kind(
    "leasequeue.E002",
    "server",
    "MySQL 8.0.17, MariaDB 10.6 or PostgreSQL 14 are the oldest supported.",
)
READ_ONLY = Kind(
    "leasequeue.E009",
    "server",
    "Point LEASEQUEUE['DATABASE'] at the server that takes writes, not at a replica.",
)
LOG_FORMAT = Kind(
    "leasequeue.E010",
    "server",
    "Set binlog_format to ROW, or MIXED.",
)
TABLE = Kind(
    "leasequeue.E011",
    "engine",
    "Stop the workers and run ALTER TABLE … ENGINE=InnoDB for each: there is neither a rollback "
    "nor a row lock now.",
)
DEFAULT = Kind(
    "leasequeue.E012",
    "engine",
    "Set default_storage_engine to InnoDB on the server, or "
    "'init_command': 'SET default_storage_engine=InnoDB' in the database's OPTIONS, before "
    "'migrate'.",
)


def skip_locked(case: Case) -> Iterator[Finding]:
    """The server is too old for SELECT … FOR UPDATE SKIP LOCKED."""
    features = case.connection.features
    if features.has_select_for_update and not features.has_select_for_update_skip_locked:
        version = ".".join(map(str, case.connection.get_database_version()))
        yield TOO_OLD.found(
            f"The queue's database server, version {version}, has no "
            "SELECT … FOR UPDATE SKIP LOCKED."
        )


def table_engines(case: Case) -> Iterator[Finding]:
    """A table of the queue has an engine without transactions."""
    engines = case.server.engines(case.connection, list(case.models))
    wrong = {table: engine for table, engine in engines.items() if engine != case.server.engine}
    if wrong:
        named = ", ".join(f"{table} ({engine})" for table, engine in sorted(wrong.items()))
        yield TABLE.found(f"Tables whose engine is not {case.server.engine}: {named}.")


def default_engine(case: Case) -> Iterator[Finding]:
    """New tables would get an engine without transactions."""
    engine = case.server.default_engine(case.variables)
    if engine is not None and engine.lower() != str(case.server.engine).lower():
        yield DEFAULT.found(f"The server makes new tables with the engine {engine}.")


def log_format(case: Case) -> Iterator[Finding]:
    """The server refuses writes of READ COMMITTED transactions."""
    if found := case.server.refused_log_format(case.variables):
        yield LOG_FORMAT.found(
            f"The binary log's format is {found}: the server refuses the queue's writes, which "
            "are READ COMMITTED."
        )


def read_only(case: Case) -> Iterator[Finding]:
    """The server takes no writes."""
    if found := case.server.read_only(case.variables):
        yield READ_ONLY.found(f"The queue's database takes no writes: {found} is on.")
