"""SQLite: one writer, one file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialects.base import Dialect, Trouble, is_operational

__all__ = ["SQLite"]

_FORMAT = "replace('~Y-~m-~d ~H:~M:~f000', '~', char(37))"
_INDEXES = frozenset({"leasequeue_job_claim", "leasequeue_job_recover", "leasequeue_job_type"})


class SQLite(Dialect):
    """SQLite 3.35 and later, by the host's clock in milliseconds."""

    # char(37) is "%": column defaults reach the server unescaped, statements with parameters not.
    now = stamp = stamp_one = f"strftime({_FORMAT}, 'now')"
    later = f"strftime({_FORMAT}, 'now', %s)"
    clock_sources = ("'now'",)
    scattered = (
        f"strftime({_FORMAT}, 'now', "
        "round(abs(random() / 9.3e18) * CAST(%s AS REAL), 3) || ' seconds')"
    )
    random_key = "lower(hex(randomblob(32)))"
    skip_locked = wait_locked = ""
    one_writer = True
    begin = "BEGIN IMMEDIATE"  # a deferred BEGIN fails at once when it must become a writer
    text_type = ascii_type = "varchar(%d)"
    token_type = "BLOB"
    time_type = "datetime"

    def in_memory(self, connection: BaseDatabaseWrapper) -> bool:
        return bool(connection.is_in_memory_db())  # type: ignore[attr-defined]  # SQLite's own

    def clock_reading(self, source: str, micros: int, stopped_at: datetime | None) -> str:
        if stopped_at is not None:
            source = f"'{self.time_param(stopped_at)}'"
        return f"{source}, '{micros / 1_000_000:+.6f} seconds'"

    def hint(self, index: str) -> str:
        if index == "PRIMARY":
            return " NOT INDEXED"  # the rowid is none
        # Indexes of unique constraints have names of SQLite's own.
        return f" INDEXED BY {index}" if index in _INDEXES else ""

    def span(self, seconds: float) -> Any:
        return f"{seconds:+.6f} seconds"

    def time_param(self, value: datetime) -> Any:
        # Always six digits: the text must sort as the time does.
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")

    def is_duplicate(self, error: BaseException) -> bool:
        return "UNIQUE constraint failed" in str(error)

    def trouble(self, error: BaseException) -> Trouble | None:
        text = str(error)
        busy = "database is locked" in text or "database table is locked" in text
        if busy and is_operational(error):
            return Trouble.REPEAT
        return Trouble.RECONNECT if "disk is full" in text else None

    def control_options(self, options: dict[str, Any], bounds: dict[str, float]) -> dict[str, Any]:
        return {**options, "timeout": bounds["row_lock"]}
