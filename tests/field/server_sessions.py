"""Sessions that their server ends because nothing happens in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.waiting import wait_until

_NUMBER = {"mysql": "SELECT CONNECTION_ID()", "postgresql": "SELECT pg_backend_pid()"}
_THERE = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %s",
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE pid = %s",
}
#: Ends the session after a second without a statement, in a transaction or out of one.
LIMITS = {
    "mysql": ("SET SESSION wait_timeout = 1",),
    "postgresql": (
        "SET idle_session_timeout = '1s'",
        "SET idle_in_transaction_session_timeout = '1s'",
    ),
}


def options_with_limits(vendor: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return connection OPTIONS under which every session has these limits."""
    if vendor == "mysql":
        return {**options, "init_command": LIMITS[vendor][0]}
    limits = "-c idle_session_timeout=1s -c idle_in_transaction_session_timeout=1s"
    return {**options, "options": limits}


def number(connection: BaseDatabaseWrapper) -> int:
    """Return the server's number for the session of this connection."""
    with connection.cursor() as cursor:
        cursor.execute(_NUMBER[connection.vendor])
        return int(cursor.fetchone()[0])


def wait_ended(observer: BaseDatabaseWrapper, session: int) -> None:
    """Return when the server has ended that session; the observer's own must not have limits."""

    def ended() -> bool:
        with observer.cursor() as cursor:
            cursor.execute(_THERE[observer.vendor], [session])
            return not cursor.fetchone()[0]

    wait_until(ended, message="the server keeps the session")


def limit(connection: BaseDatabaseWrapper) -> None:
    """Give this connection's session the limits, as long as it lasts."""
    with connection.cursor() as cursor:
        for sql in LIMITS[connection.vendor]:
            cursor.execute(sql)


def pause(observer: Callable[[], BaseDatabaseWrapper]) -> None:
    """In a handler: do something else, until the server has ended this thread's session."""
    session = number(connections["default"])
    other = observer()
    try:
        wait_ended(other, session)
    finally:
        other.close()
