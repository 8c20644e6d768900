"""MySQL and MariaDB: InnoDB, mysqlclient."""

from __future__ import annotations

from typing import Any

from django.db import InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialects.base import Dialect, Trouble, whole_seconds

__all__ = ["MariaDB", "MySQL"]

_FOUND_ROWS, _MULTI_STATEMENTS = 1 << 1, 1 << 16


class MySQL(Dialect):
    """MySQL 8.0.17 and later, InnoDB."""

    # Django's Now() is in the session's time zone here, and CURRENT_TIMESTAMP defaults are too.
    now = stamp = stamp_one = "UTC_TIMESTAMP(6)"
    later = "(UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)"
    scattered = "(UTC_TIMESTAMP(6) + INTERVAL FLOOR(RAND() * %s) MICROSECOND)"
    random_key = "SHA2(UUID(), 256)"
    share_lock = " LOCK IN SHARE MODE"
    late_modules = ("connections",)
    on_conflict = False
    end_statement = "KILL QUERY %s"
    begin = "START TRANSACTION"
    # Raw bytes in a statement make the process list unreadable (error 3854), and the slow log.
    token_mark = "UNHEX(%s)"
    silent_ends = True  # a deadlock that is swallowed (1213), DDL
    # A lock wait (1205) takes all with it where innodb_rollback_on_timeout says so.
    ending_codes = frozenset({1213, 1205, 1020, 3101, 1180})
    text_type = "varchar(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"
    ascii_type = "varchar(%d) CHARACTER SET ascii COLLATE ascii_bin"
    token_type = "binary(16)"
    time_type = "datetime(6)"
    duplicate_codes = frozenset({1062})
    # 1180 is "Got error 149" (lost certification) or a lost primary component: both say repeat.
    # 1317, 1969 and 3024 end one statement: KILL QUERY, or a limit on its time.
    repeat_codes = frozenset({1213, 1205, 1020, 3572, 3101, 1180, 1317, 1969, 3024})
    # 1040, 1203 and 1226 are too many connections just now, 1927 is MariaDB's KILL. A full disk
    # (1021, 1114) is waited for like a server that is away: workers that end come to the same.
    reconnect_codes = frozenset(
        {2002, 2003, 2006, 2013, 2055, 1021, 1040, 1047, 1053, 1114, 1203, 1226, 1290, 1927}
        | {3100, 4031}
    )

    def hint(self, index: str) -> str:
        return f" FORCE INDEX ({index})"

    def delete_from(self, table: str, index: str) -> str:
        # Only a DELETE of several tables takes a hint. Without one a small table is scanned, and
        # the scan waits for every row that a worker has locked.
        return f"DELETE gone FROM {table} gone{self.hint(index)}"

    def trouble(self, error: BaseException) -> Trouble | None:
        # mysqlclient's (0, "") for a connection in a state that it cannot name.
        if isinstance(error, InterfaceError):
            return Trouble.RECONNECT
        return super().trouble(error)

    def token_param(self, token: bytes) -> Any:
        return token.hex()

    def is_unknown_commit(self, error: BaseException) -> bool:
        # 1180 tells of a lost certification ("149", rolled back) or of a lost primary component.
        lost = self.code_of(error) == 1180 and "149" not in str(error)
        return lost or super().is_unknown_commit(error)

    def session_id(self, connection: BaseDatabaseWrapper) -> int | None:
        raw = connection.connection
        return int(raw.thread_id()) if raw is not None and raw.open else None

    def descriptor(self, connection: BaseDatabaseWrapper) -> int | None:
        raw = connection.connection
        return int(raw.fileno()) if raw is not None and raw.open else None

    def keeps_snapshot(self, connection: BaseDatabaseWrapper) -> bool:
        return getattr(connection, "isolation_level", None) != "read committed"

    def prologue(self, connection: BaseDatabaseWrapper) -> tuple[str, ...]:
        if not self.keeps_snapshot(connection):
            return ()
        # Under REPEATABLE READ a range that is locked for update blocks every insert into it.
        return ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED",)

    def control_options(self, options: dict[str, Any], bounds: dict[str, float]) -> dict[str, Any]:
        return {
            **options,
            "isolation_level": "read committed",
            "connect_timeout": whole_seconds(bounds["connect"]),
            "read_timeout": whole_seconds(bounds["network"]),
            "write_timeout": whole_seconds(bounds["network"]),
            # mysqlclient sets the flag by itself unless it is told not to.
            # Django's own flag, which an option of that name replaces: rows found are counted.
            "client_flag": (options.get("client_flag", 0) | _FOUND_ROWS) & ~_MULTI_STATEMENTS,
            "multi_statements": False,
        }

    def control_session(self, bounds: dict[str, float], silence: float) -> tuple[str, ...]:
        row, metadata = whole_seconds(bounds["row_lock"]), whole_seconds(bounds["metadata_lock"])
        locks = f"innodb_lock_wait_timeout = {row}, lock_wait_timeout = {metadata}"
        return (f"SET SESSION {locks}, wait_timeout = {whole_seconds(silence)}",)


class MariaDB(MySQL):
    """MariaDB 10.6 and later, InnoDB."""

    text_type = "varchar(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
