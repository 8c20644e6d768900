"""Session changes: which statements of a handler outlive its transactions, seen in their text.

A connection that saw one is not for the next job. What goes to the driver past Django's cursors,
or happens inside stored procedures, is not seen.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobInterrupted
from django_leasequeue.runtime.rollbacks import close_when_interrupted

__all__ = [
    "idle_seconds",
    "is_unfinished",
    "session_changed",
    "watch",
    "watch_new_connections",
]

_WATCH = "leasequeue_watch"
_LENGTH = 2000
#: sqlite3's True; libpq's ACTIVE, INTRANS and INERROR.
_OPEN = frozenset({1, 2, 3})

_KINDS = re.compile(
    r"""
    (?:\A|;)\s*(?:(?:/\*(?!!).*?\*/|--[^\n]*\n|\#[^\n]*\n)\s*)*(?:/\*!\d*\s*)?  # comments
    (?:
      (?P<begins>(?:begin|start\s+transaction|xa\s+(?:start|begin))\b)
      | (?P<stays>
        set\s+(?:@@)?(?:(?:session|local)[\s.]\s*)?autocommit\s*:?=\s*(?:0|off|false)\b
      )
      | (?P<ends>(?:commit|end|abort|rollback(?!(?:\s+work|\s+transaction)?\s+to))\b)
      | (?P<once>set\s+transaction\b)
      | (?P<local>set\s+local\b)
      | (?P<lasts>
        set\s+(?!(?:constraints|statement)\b)
        | (?:reset|discard|use|prepare|listen|declare|handler|attach|detach)\b | load\s+'
        | lock\s+(?:instance|tables?\s.*\b(?:read|write))\b
        | flush\s+(?:local\s+|no_write_to_binlog\s+)?tables?\b | backup\s+(?:stage|lock)\b
        | create\s+(?:or\s+replace\s+)?(?:local\s+|global\s+)?temp(?:orary)?\b
        | pragma\s+[\w.]+\s*=
      )
    )
    | (?P<calls>
      \b(?:get_lock|pg_(?:try_)?advisory_lock(?:_shared)?)\s*\(
      | \bset_config\s*\((?![^()]*,\s*true\s*\))
      | \binto\s+(?:temp(?:orary)?\b|@) | @\w+\s*:=
    )
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


@lru_cache(maxsize=512)
def _kinds(text: str) -> frozenset[str]:
    """Return the groups of _KINDS that occur in a statement.

    Searching the text of a usual query takes 10 µs, finding it again a fiftieth of that.
    """
    return frozenset(found.lastgroup or "" for found in _KINDS.finditer(text))


class Watch:
    """An execute wrapper that remembers what the session of its connection has been through."""

    __slots__ = ("changed", "connected", "local_lasts", "once", "unfinished", "used_at")

    def __init__(self, *, local_lasts: bool) -> None:
        self.local_lasts = local_lasts
        self.connected = False
        self.used_at = float("-inf")
        self.clear()

    def clear(self) -> None:
        """Take the session as it is now for a clean one."""
        self.changed = self.once = self.unfinished = False

    def __call__(
        self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any
    ) -> Any:
        """Note what `sql` changes, and execute it."""
        text = sql if isinstance(sql, str) else _as_text(sql, context["connection"])
        kinds = _kinds(text[:_LENGTH])
        self.once = "once" in kinds  # it is used up by the next transaction
        if kinds:
            self._note(kinds)
        try:
            return execute(sql, params, many, context)
        except JobInterrupted:
            _end_statement(context["connection"].connection)
            raise
        finally:
            self.used_at = time.monotonic()

    def _note(self, kinds: frozenset[str]) -> None:
        if "ends" in kinds:
            self.unfinished = False
        if kinds & {"begins", "stays"}:
            self.unfinished = True
        if kinds & {"stays", "lasts", "calls"} or ("local" in kinds and self.local_lasts):
            self.changed = True


def _end_statement(raw: Any) -> None:
    """Ask the server to end a statement whose driver has left off waiting for it: psycopg does.

    It would hold its locks until its own end, even when the connection is closed.
    """
    cancel = getattr(raw, "cancel", None)
    if cancel is None:
        return
    try:
        cancel()
    except Exception as error:  # noqa: BLE001  (drivers differ; the interrupt is what counts)
        log_event("discard_failed", level=logging.DEBUG, error=type(error).__qualname__)


def _as_text(sql: Any, connection: BaseDatabaseWrapper) -> str:
    """Return what psycopg composed, or bytes, as text."""
    if isinstance(sql, bytes):
        return sql.decode(errors="replace")
    if hasattr(sql, "as_string"):
        return str(sql.as_string(connection.connection))
    return str(sql)


def watch(connection: BaseDatabaseWrapper) -> None:
    """Watch this connection's session, which is taken for a clean one now.

    Once watched, it stays so when it reconnects. A worker's own connections are left alone.
    """
    state = vars(connection)
    if "leasequeue_session" in state:
        return
    if _WATCH not in state:
        # MySQL and MariaDB, which cannot roll DDL back, take LOCAL for another word for SESSION.
        state[_WATCH] = Watch(local_lasts=not connection.features.can_rollback_ddl)
        # At the bottom: whoever left `execute_wrapper()` would else remove this one for his own.
        connection.execute_wrappers.insert(0, state[_WATCH])
        close_when_interrupted(connection)
    state[_WATCH].clear()
    state[_WATCH].connected |= connection.connection is not None


@cache
def watch_new_connections() -> None:
    """Watch every connection that this process makes from now on.

    What the project's receivers of `connection_created` set is part of the clean session,
    therefore this comes after them: call it when the project has been loaded.
    """
    connection_created.connect(_on_created, dispatch_uid="leasequeue_watch")


def _on_created(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    watch(connection)


def session_changed(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether a statement since `watch` may have changed the session for the next user."""
    seen: Watch | None = vars(connection).get(_WATCH)
    return seen is not None and (seen.changed or seen.once)


def idle_seconds(connection: BaseDatabaseWrapper) -> float:
    """Return how long ago the last statement on this connection ended; for ever, if unknown."""
    seen: Watch | None = vars(connection).get(_WATCH)
    return time.monotonic() - seen.used_at if seen is not None else float("inf")


def is_unfinished(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether a transaction was begun, by whatever means, and neither committed nor undone.

    Also one that ended with its connection, unless that has been opened again since.
    """
    if connection.in_atomic_block or connection.closed_in_transaction:
        return True
    seen: Watch | None = vars(connection).get(_WATCH)
    raw = connection.connection
    if raw is None and (seen is None or not seen.connected):
        return False
    if not connection.settings_dict["AUTOCOMMIT"]:
        return False
    return not connection.autocommit or (raw is not None and _begun_by_hand(raw, seen))


def _begun_by_hand(raw: Any, seen: Watch | None) -> bool:
    """Ask the driver, where it has been told by the server; else the statements must do."""
    inside = getattr(raw, "in_transaction", None)  # sqlite3
    if inside is None:
        inside = getattr(getattr(raw, "info", None), "transaction_status", None)  # psycopg
    if inside is not None:
        return int(inside) in _OPEN
    return seen is not None and seen.unfinished
