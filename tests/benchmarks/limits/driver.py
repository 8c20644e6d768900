"""The three drivers without Django: how to connect, and how each server says "now"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit


@dataclass
class Database:
    """A driver's connection, and the words in which statements differ."""

    connection: Any
    now: str
    stamp: str
    later: str
    begin: str = ""
    index: str = ""
    lock: str = " FOR UPDATE SKIP LOCKED"
    mark: str = "%s"

    def __post_init__(self) -> None:
        self.cursor = self.connection.cursor()

    def execute(self, sql: str, params: tuple[Any, ...] | list[Any] = ()) -> int:
        """Run one statement; return its row count."""
        self.cursor.execute(sql.replace("%s", self.mark), params)
        return int(self.cursor.rowcount)

    def start(self) -> None:
        """Begin a transaction where the driver does not by itself."""
        if self.begin:
            self.cursor.execute(self.begin)

    def commit(self) -> None:
        """Commit."""
        self.connection.commit()


def connect(url: str) -> Database:
    """Connect to what a DATABASE_URL names."""
    parts = urlsplit(url)
    return {"mysql": _mysql, "postgres": _postgres, "sqlite": _sqlite}[parts.scheme](parts)


def _mysql(parts: SplitResult) -> Database:
    import MySQLdb

    connection = MySQLdb.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=unquote(parts.password or ""),
        database=parts.path[1:],
        charset="utf8mb4",
        autocommit=False,
    )
    connection.cursor().execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    return Database(
        connection,
        now="UTC_TIMESTAMP(6)",
        stamp="UTC_TIMESTAMP(6)",
        later="UTC_TIMESTAMP(6) + INTERVAL 60 SECOND",
        index=" FORCE INDEX (leasequeue_job_claim)",
    )


def _postgres(parts: SplitResult) -> Database:
    import psycopg

    connection = psycopg.connect(
        host=parts.hostname,
        port=parts.port,
        user=parts.username,
        password=unquote(parts.password or ""),
        dbname=parts.path[1:],
    )
    stamp = "(SELECT clock_timestamp())"
    return Database(
        connection,
        now="statement_timestamp()",
        stamp=stamp,
        later=f"{stamp} + interval '60 seconds'",
    )


def _sqlite(parts: SplitResult) -> Database:
    import sqlite3

    connection = sqlite3.connect(parts.path[1:], timeout=10, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    return Database(
        connection,
        now="strftime('%Y-%m-%d %H:%M:%f000', 'now')",
        stamp="strftime('%Y-%m-%d %H:%M:%f000', 'now')",
        later="strftime('%Y-%m-%d %H:%M:%f000', 'now', '+60 seconds')",
        begin="BEGIN IMMEDIATE",
        lock="",
        mark="?",
    )
