"""What the databases share, and the names of what differs.

SQL fragments are constants of a dialect; times are UTC with microseconds (SQLite: milliseconds, by
the host's clock).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

__all__ = ["Dialect", "Trouble", "is_operational", "whole_seconds"]


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
    #: The same where a statement writes one row: for several it would be several moments.
    stamp_one: ClassVar[str]
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
    #: Those errors: what the transaction has written before may be gone, and it may be committed.
    ending_codes: ClassVar[frozenset[Any]] = frozenset()
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
        for name in ("now", "stamp", "stamp_one", "later", "scattered"):
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

    def read_first(
        self, connection: BaseDatabaseWrapper, sql: str, params: Sequence[Any]
    ) -> list[Any]:
        """Return the rows of a SELECT, which is the first statement of an atomic block."""
        with connection.cursor() as cursor:
            cursor.execute(sql, params)
            rows: list[Any] = cursor.fetchall()
            return rows

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


def whole_seconds(seconds: float) -> int:
    """Return seconds as an option that takes whole ones, one at least."""
    return max(1, int(seconds))


def is_operational(error: BaseException) -> bool:
    """Tell whether it is the server's trouble rather than the statement's."""
    return isinstance(error, OperationalError)
