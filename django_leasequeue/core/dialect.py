"""The four databases: every difference between them that the queue knows, and nothing else.

No other module asks which database it is on. SQL fragments are constants of a dialect; times are
UTC with microseconds (SQLite: milliseconds, by the host's clock).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from importlib import import_module
from typing import Any, ClassVar

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.answers import bound_answers

__all__ = ["Dialect", "Trouble", "dialect_for", "family_of", "is_unknown_commit", "trouble"]


class Trouble(Enum):
    """What a database error asks for."""

    #: The whole transaction is gone or must be: roll back, repeat with jitter.
    REPEAT = "repeat"
    #: The connection is gone: close it, reconnect, repeat.
    RECONNECT = "reconnect"


class Dialect:
    """What PostgreSQL, MySQL and MariaDB share; the base of each database's own class."""

    #: "Now" for comparisons with an indexed column.
    now: ClassVar[str]
    #: "Now" for a new deadline or stamp: when the statement runs, not when its transaction began.
    stamp: ClassVar[str]
    #: A point `span(seconds)` after now; takes one parameter.
    later: ClassVar[str]
    #: What reads the server's clock in those three.
    clock_sources: ClassVar[tuple[str, ...]] = ("UTC_TIMESTAMP(6)",)
    #: A random point between now and `span(seconds)` after; another one in every row.
    scattered: ClassVar[str]
    #: A random hex text of 64 characters, the column default of idempotency_key.
    random_key: ClassVar[str]
    skip_locked: ClassVar[str] = " FOR UPDATE SKIP LOCKED"
    wait_locked: ClassVar[str] = " FOR UPDATE"
    #: Follows SELECT on the unique index after a duplicate was met.
    share_lock: ClassVar[str] = ""
    #: "INSERT … ON CONFLICT DO NOTHING RETURNING" exists and locks nothing of the row it met.
    on_conflict: ClassVar[bool] = True
    #: "WITH ended AS (UPDATE … RETURNING …) INSERT …" exists: both in one round trip.
    writes_within: ClassVar[bool] = False
    #: Starts a transaction that sees what others commit while it runs.
    begin: ClassVar[str] = "BEGIN ISOLATION LEVEL READ COMMITTED"
    #: Hold a transaction's plans to the indexes that its statements are written for, beside `hint`.
    by_index: ClassVar[tuple[str, ...]] = ()
    #: One transaction at a time may write, whatever it writes.
    one_writer: ClassVar[bool] = False
    #: Some errors and statements end a transaction without a word; a savepoint is gone with it.
    silent_ends: ClassVar[bool] = False
    #: Rows from one parameter, a JSON list of objects; takes their columns with types. "" without.
    json_rows: ClassVar[str] = ""
    #: A lease token as a parameter, made by `token_param`.
    token_mark: ClassVar[str] = "%s"
    #: A JSON text as a parameter.
    json_param: ClassVar[str] = "%s"
    #: Begins a transaction whose reads walk an index in its order, whatever statistics promise.
    in_order: ClassVar[str] = ""
    #: Ends what a session is running; takes its number. Empty where no session runs beside others.
    end_statement: ClassVar[str] = ""
    #: Tells those who listen, when the transaction commits; takes the payload. "" without such.
    notify: ClassVar[str] = ""
    #: Has a session listen.
    listen: ClassVar[str] = ""
    #: Modules of the driver that it imports when it first connects.
    late_modules: ClassVar[tuple[str, ...]] = ()
    duplicate_codes: ClassVar[frozenset[Any]] = frozenset()
    repeat_codes: ClassVar[frozenset[Any]] = frozenset()
    reconnect_codes: ClassVar[frozenset[Any]] = frozenset()

    #: By how many seconds `clock` has moved "now", and where it has stopped it.
    _moved: tuple[float, datetime | None] = (0.0, None)

    text_type: ClassVar[str]
    ascii_type: ClassVar[str]
    token_type: ClassVar[str]
    time_type: ClassVar[str]

    def span(self, seconds: float) -> Any:
        """Return the parameter of `later` for `seconds`."""
        return round(seconds * 1_000_000)

    @contextmanager
    def clock(self, *, ahead: float = 0.0, stopped_at: datetime | None = None) -> Iterator[None]:
        """Let "now" in this process's statements be `ahead` seconds of the server's, or stand.

        For tests of projects; one in the other adds up. Column defaults stay with the server's own
        clock.
        """
        before = self._moved
        # A clock that stands goes on standing when it is moved.
        moved = (before[0] + ahead, before[1]) if stopped_at is None else (ahead, stopped_at)
        try:
            self._show(moved)
            yield
        finally:
            self._show(before)

    def _show(self, moved: tuple[float, datetime | None]) -> None:
        self._moved = moved
        ahead, stopped_at = moved
        for name in ("now", "stamp", "later", "scattered"):
            vars(self).pop(name, None)
            if moved == (0.0, None):
                continue
            for source in self.clock_sources:
                reading = self.clock_reading(source, round(ahead * 1_000_000), stopped_at)
                vars(self)[name] = getattr(self, name).replace(source, reading)

    def clock_reading(self, source: str, micros: int, stopped_at: datetime | None) -> str:
        """Return SQL for what a clock shows that is moved, or has stopped."""
        if stopped_at is not None:
            source = f"TIMESTAMP'{stopped_at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
        return f"({source} + INTERVAL {micros} MICROSECOND)"

    def token_param(self, token: bytes) -> Any:
        """Return the parameter of `token_mark` for a token."""
        return token

    def in_memory(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether only this process can see the database."""
        return False

    def hint(self, index: str) -> str:
        """Return what follows a table's name to hold the planner to `index`."""
        return ""

    def null_in_order(self, column: str) -> str:
        """Return what ORDER BY begins with where `column IS NULL` and an index has it first."""
        return ""

    def delete_from(self, table: str, index: str) -> str:
        """Return the beginning of a DELETE that is held to `index`; WHERE follows."""
        return f"DELETE FROM {table}{self.hint(index)}"

    def aside(self, column: str) -> str:
        """Return `column` for a condition beside the one whose index is meant to be used."""
        return column

    def stretch(
        self, columns: Sequence[str], after: Sequence[Any], last: Any
    ) -> tuple[str, list[Any]]:
        """Return " WHERE … ORDER BY …", with parameters, for a stretch of an index.

        It holds what lies behind the place `after`, a value for each of the index's `columns`, and
        differs from it in the last column alone, up to `last`.
        """
        where = "".join(f"{column} = %s AND " for column in columns[:-1])
        where += f"{columns[-1]} > %s AND {columns[-1]} <= %s"
        return f" WHERE {where} ORDER BY {columns[-1]}", [*after, last]

    def select_time(self, column: str) -> str:
        """Return SQL that reads a time column as something `as_utc` understands."""
        return column

    def select_moment(self, column: str) -> str:
        """Return `select_time` of a column, cut to what Python can hold; NULL stays NULL."""
        return self.select_time(column)

    def as_utc(self, value: Any) -> datetime | None:
        """Return a time read through `select_time`, or by a model, as an aware UTC datetime."""
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if value is None or value.tzinfo is not None:
            return value.astimezone(UTC) if value is not None else None
        utc: datetime = value.replace(tzinfo=UTC)
        return utc

    def time_param(self, value: datetime) -> Any:
        """Return an aware datetime as a statement's parameter."""
        return value.astimezone(UTC).replace(tzinfo=None)

    def code_of(self, error: BaseException) -> Any:
        """Return the server's code in a driver's or Django's exception, or None."""
        for candidate in (error, error.__cause__):
            args = getattr(candidate, "args", ())
            if args and isinstance(args[0], int):
                return args[0]
        return None

    def is_duplicate(self, error: BaseException) -> bool:
        """Tell whether a unique index refused the row; no other IntegrityError will do."""
        return self.code_of(error) in self.duplicate_codes

    def trouble(self, error: BaseException) -> Trouble | None:
        """Return what `error` asks for; None when repeating cannot help."""
        code = self.code_of(error)
        if code in self.reconnect_codes:
            return Trouble.RECONNECT
        return Trouble.REPEAT if code in self.repeat_codes else None

    def is_unknown_commit(self, error: BaseException) -> bool:
        """Tell whether `error`, raised by COMMIT, leaves open what the server did."""
        return self.trouble(error) is Trouble.RECONNECT

    def session_id(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return the server's number of an open session, without a statement."""
        return None

    def descriptor(self, connection: BaseDatabaseWrapper) -> int | None:
        """Return the file descriptor of an open connection's socket, None where there is none."""
        return None

    def keeps_snapshot(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether plain reads in a transaction all show the state of its first one."""
        return False

    def prologue(self, connection: BaseDatabaseWrapper) -> tuple[str, ...]:
        """Return what must run before `begin` on a connection with the project's own settings."""
        return ()

    def control_options(self, options: dict[str, Any], bounds: dict[str, float]) -> dict[str, Any]:
        """Return connection OPTIONS bounded for a worker's own connection.

        `bounds` holds seconds: connect, network, row_lock, metadata_lock.
        """
        raise NotImplementedError

    def control_session(self, bounds: dict[str, float], silence: float) -> tuple[str, ...]:
        """Return the statements that prepare a worker's own connection after each connect.

        `silence` is how long the server waits, in seconds, for the next word of a transaction.
        """
        return ()

    def bound_waits(self, connection: BaseDatabaseWrapper, bounds: dict[str, float]) -> None:
        """Bound those waits of a worker's own connection, not yet open, that no option bounds."""


class MySQL(Dialect):
    """MySQL 8.0.17 and later, InnoDB."""

    # Django's Now() is in the session's time zone here, and CURRENT_TIMESTAMP defaults are too.
    now = stamp = "UTC_TIMESTAMP(6)"
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
            "connect_timeout": _whole(bounds["connect"]),
            "read_timeout": _whole(bounds["network"]),
            "write_timeout": _whole(bounds["network"]),
            "client_flag": options.get("client_flag", 0) & ~_MULTI_STATEMENTS,
        }

    def control_session(self, bounds: dict[str, float], silence: float) -> tuple[str, ...]:
        row, metadata = _whole(bounds["row_lock"]), _whole(bounds["metadata_lock"])
        locks = f"innodb_lock_wait_timeout = {row}, lock_wait_timeout = {metadata}"
        return (f"SET SESSION {locks}, wait_timeout = {_whole(silence)}",)


class MariaDB(MySQL):
    """MariaDB 10.6 and later, InnoDB."""

    text_type = "varchar(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


class PostgreSQL(Dialect):
    """PostgreSQL 14 and later, psycopg 3."""

    # clock_timestamp() is volatile, so no index condition: 17.5 ms against 0.09 ms when measured.
    now = "statement_timestamp()"
    stamp = "(SELECT clock_timestamp())"
    later = "((SELECT clock_timestamp()) + %s * interval '1 microsecond')"
    clock_sources = ("statement_timestamp()", "clock_timestamp()")
    scattered = "((SELECT clock_timestamp()) + random() * %s * interval '1 microsecond')"
    random_key = "encode(sha256(convert_to(gen_random_uuid()::text, 'UTF8')), 'hex')"
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
        if isinstance(error, InterfaceError) or (code is None and _is_operational(error)):
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
            "connect_timeout": max(2, _whole(bounds["connect"])),  # libpq takes 1 as 2
            "tcp_user_timeout": round(bounds["network"] * 1000),
            "keepalives_idle": _whole(bounds["network"]),
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


_SQLITE_FORMAT = "replace('~Y-~m-~d ~H:~M:~f000', '~', char(37))"


class SQLite(Dialect):
    """SQLite 3.35 and later, by the host's clock in milliseconds."""

    # char(37) is "%": column defaults reach the server unescaped, statements with parameters not.
    now = stamp = f"strftime({_SQLITE_FORMAT}, 'now')"
    later = f"strftime({_SQLITE_FORMAT}, 'now', %s)"
    clock_sources = ("'now'",)
    scattered = (
        f"strftime({_SQLITE_FORMAT}, 'now', "
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
        return f" INDEXED BY {index}" if index in _SQLITE_INDEXES else ""

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
        if busy and _is_operational(error):
            return Trouble.REPEAT
        return Trouble.RECONNECT if "disk is full" in text else None

    def control_options(self, options: dict[str, Any], bounds: dict[str, float]) -> dict[str, Any]:
        return {**options, "timeout": bounds["row_lock"]}


_MULTI_STATEMENTS = 1 << 16
_SQLITE_INDEXES = frozenset(
    {"leasequeue_job_claim", "leasequeue_job_recover", "leasequeue_job_type"}
)


def _whole(seconds: float) -> int:
    return max(1, int(seconds))


def _is_operational(error: BaseException) -> bool:
    return isinstance(error, OperationalError)


_DIALECTS: dict[str, Dialect] = {
    "mysql": MySQL(),
    "mariadb": MariaDB(),
    "postgresql": PostgreSQL(),
    "sqlite": SQLite(),
}


def dialect_for(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect of a connection's database.

    Raises NotImplementedError for a database that the queue does not support. MySQL and MariaDB
    share a backend and are told apart by the server's version, which is asked once: until then
    this may connect, and raise the database's error.
    """
    dialect = family_of(connection)
    if isinstance(dialect, MySQL) and getattr(connection, "mysql_is_mariadb", False):
        return _DIALECTS["mariadb"]
    return dialect


def family_of(connection: BaseDatabaseWrapper) -> Dialect:
    """Return the dialect as far as it is known without a server: MySQL's also for MariaDB.

    Their error codes and connection options are the same.
    """
    try:
        return _DIALECTS[connection.vendor]
    except KeyError:
        raise NotImplementedError(
            "django-leasequeue runs on MySQL, MariaDB, PostgreSQL and SQLite, "
            f"not on {connection.vendor}"
        ) from None


def load_driver(connection: BaseDatabaseWrapper) -> None:
    """Import all of a connection's driver, so that connecting imports nothing any more.

    An interrupt in a thread may end such an import, and with it the same one of other threads.
    """
    dialect = _DIALECTS.get(connection.vendor)
    backend: Any = connection
    for name in dialect.late_modules if dialect else ():
        import_module(f"{backend.Database.__name__}.{name}")


def trouble(connection: BaseDatabaseWrapper, error: BaseException) -> Trouble | None:
    """Return what a database error on `connection` asks for, None when repeating cannot help."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return None
    return family_of(connection).trouble(error)


def is_unknown_commit(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Tell whether `error`, raised by COMMIT, leaves open what the server did."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    return family_of(connection).is_unknown_commit(error)
