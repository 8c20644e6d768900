"""PostgreSQL and psycopg."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.answers import bound_answers
from django_leasequeue.core.dialects.base import (
    Dialect,
    Trouble,
    is_operational,
    whole_seconds,
)

__all__ = ["PostgreSQL"]

#: libpq's status of a session that is in no transaction.
_IDLE = 0


class PostgreSQL(Dialect):
    """PostgreSQL 14 and later, psycopg 3."""

    # clock_timestamp() is volatile, so no index condition: 17.5 ms against 0.09 ms when measured.
    now = "statement_timestamp()"
    stamp = "(SELECT clock_timestamp())"
    # Two subqueries less to plan: 18 of 302 µs of complete()'s last statement when measured.
    stamp_one = "clock_timestamp()"
    later = "((SELECT clock_timestamp()) + %s * interval '1 microsecond')"
    clock_sources = ("statement_timestamp()", "clock_timestamp()")
    scattered = "((SELECT clock_timestamp()) + random() * %s * interval '1 microsecond')"
    random_key = "encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex')"
    # As strong as the lock of an UPDATE of no key: rows with foreign keys to this one may come.
    wait_locked = " FOR NO KEY UPDATE"
    json_param = "%s::jsonb"
    writes_within = True
    # psycopg takes apart, each time, a statement of thousands of parameters: a quarter of the time.
    json_rows = "json_to_recordset(%s::json) AS r({columns})"
    # In one round trip, and gone with the transaction. With statistics of a quiet time a bitmap of
    # all that is dead, sorted for every chunk, looks as cheap as the next entries of an index.
    by_index = (
        (
            "SELECT set_config('enable_sort', 'off', true), "
            "set_config('enable_incremental_sort', 'off', true), "
            "set_config('enable_seqscan', 'off', true), "
            "set_config('enable_bitmapscan', 'off', true)"
        ),
    )
    in_order = (
        "SET LOCAL enable_sort = off; SET LOCAL enable_seqscan = off; "
        "SET LOCAL enable_bitmapscan = off"
    )
    end_statement = "SELECT pg_cancel_backend(%s)"
    notify = "pg_notify('leasequeue', %s)"
    listen = "LISTEN leasequeue"
    text_type = 'varchar(%d) COLLATE "C"'
    ascii_type = 'varchar(%d) COLLATE "C"'
    token_type = "bytea"
    time_type = "timestamp with time zone"
    duplicate_codes = frozenset({"23505"})
    repeat_codes = frozenset({"40001", "40P01", "55P03", "57014"})
    #: The server shuts down, starts, or has ended a session that was idle for too long; its disk
    #: is full.
    ended_codes = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "53100"})

    def clock_reading(self, source: str, micros: int, stopped_at: datetime | None) -> str:
        if stopped_at is not None:
            source = f"timestamptz '{stopped_at.astimezone(UTC).isoformat()}'"
        return f"({source} + {micros} * interval '1 microsecond')"

    def aside(self, column: str) -> str:
        # No index serves an expression. Statistics of an empty table, or of one without reserved
        # jobs, promise that any index on these columns reads next to nothing.
        nothing = "+ interval '0'" if column.endswith(("_until", "_at")) else "|| ''"
        return f"({column} {nothing})"

    def read_first(
        self, connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]
    ) -> list[Any]:
        # In one round trip with BEGIN, which psycopg sends by itself in another: 4 % of a job with
        # complete(). In autocommit mode it does not; code in the block is to see the usual mode.
        raw = connection.connection
        if not _sends_plain_begin(connection):
            return super().read_first(connection, sql, params)
        raw.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"BEGIN; {sql}", params)
                cursor.nextset()
                rows: list[Any] = cursor.fetchall()
                return rows
        finally:
            raw._autocommit = False  # noqa: SLF001  (its setter refuses inside a transaction)

    def stretch(
        self, columns: Sequence[str], after: Sequence[Any], last: Any
    ) -> tuple[str, list[Any]]:
        # As rows: "id > x" would be a reason to walk the primary key, past every other job.
        row, marks = ", ".join(columns), ", ".join(["%s"] * len(columns))
        where = f" WHERE ({row}) > ({marks}) AND ({row}) <= ({marks}) ORDER BY {row}"
        return where, [*after, *after[:-1], last]

    def null_in_order(self, column: str) -> str:
        # Here "IS NULL" is no constant to leave out; MariaDB sorts when it is not left out.
        return f"{column}, "

    def select_moment(self, column: str) -> str:
        # Plain SQL may have put '-infinity' there.
        first, last = "timestamptz '0002-01-01 00:00+00'", "timestamptz '9000-01-01 00:00+00'"
        # GREATEST and LEAST leave NULLs out.
        bounded = (
            f"CASE WHEN {column} IS NOT NULL THEN LEAST(GREATEST({column}, {first}), {last}) END"
        )
        return self.select_time(f"({bounded})")

    def session_id(self, connection: BaseDatabaseWrapper) -> int | None:
        raw = connection.connection
        return int(raw.info.backend_pid) if raw is not None and not raw.closed else None

    def descriptor(self, connection: BaseDatabaseWrapper) -> int | None:
        raw = connection.connection
        return int(raw.fileno()) if raw is not None and not raw.closed else None

    def keeps_snapshot(self, connection: BaseDatabaseWrapper) -> bool:
        level = getattr(getattr(connection, "isolation_level", None), "name", "")
        return level in ("REPEATABLE_READ", "SERIALIZABLE")

    def select_time(self, column: str) -> str:
        # Under USE_TZ=False Django reads timestamptz in the session's zone and drops the offset.
        return f"{column} AT TIME ZONE 'UTC'"

    def time_param(self, value: datetime) -> Any:
        return value.astimezone(UTC)

    def code_of(self, error: BaseException) -> Any:
        for candidate in (error, error.__cause__):
            if code := getattr(candidate, "sqlstate", None):
                return code
        return None

    def trouble(self, error: BaseException) -> Trouble | None:
        code = self.code_of(error)
        if isinstance(error, InterfaceError) or (code is None and is_operational(error)):
            return Trouble.RECONNECT  # libpq's own "server closed the connection" has no SQLSTATE
        if code is not None and (code.startswith("08") or code in self.ended_codes):
            return Trouble.RECONNECT
        return Trouble.REPEAT if code in self.repeat_codes else None

    def control_options(self, options: dict[str, Any], bounds: dict[str, float]) -> dict[str, Any]:
        kept = {
            key: value for key, value in options.items() if key not in ("pool", "isolation_level")
        }
        return {
            **kept,
            "connect_timeout": max(2, whole_seconds(bounds["connect"])),  # libpq takes 1 as 2
            "tcp_user_timeout": round(bounds["network"] * 1000),
            "keepalives_idle": whole_seconds(bounds["network"]),
        }

    def control_session(self, bounds: dict[str, float], silence: float) -> tuple[str, ...]:
        # Below the bound of the answer: a slow statement is to cost itself, not the connection.
        statement = round(bounds["network"] * 900)
        lock = round(bounds["row_lock"] * 1000)
        return (
            f"SET statement_timeout = {statement}",
            f"SET lock_timeout = {lock}",
            f"SET idle_in_transaction_session_timeout = {round(silence * 1000)}",
            "SET default_transaction_isolation = 'read committed'",
            # A queue that the statistics do not know looks as cheap to sort as to range over.
            "SET enable_sort = off",
            "SET enable_seqscan = off",
            "SET enable_bitmapscan = off",
            # What must be scanned or sorted nonetheless then seems dear enough to be compiled:
            # 650 ms for a query of 0.03 ms when measured.
            "SET jit = off",
        )

    def bound_waits(self, connection: BaseDatabaseWrapper, bounds: dict[str, float]) -> None:
        bound_answers(connection, bounds["network"])


def _sends_plain_begin(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the driver is psycopg 3, would begin by a plain BEGIN now, and binds itself.

    The server takes several statements at once only without parameters.
    """
    raw = connection.connection
    if not hasattr(raw, "_autocommit") or raw.autocommit:
        return False
    if connection.settings_dict["OPTIONS"].get("server_side_binding") is True:
        return False
    options = (raw.isolation_level, raw.read_only, raw.deferrable)
    return options == (None, None, None) and raw.info.transaction_status == _IDLE
