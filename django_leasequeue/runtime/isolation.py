"""Between two jobs: what one handler leaves behind in its thread does not reach the next."""

from __future__ import annotations

import contextvars
import decimal
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone, translation

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.events import log_event
from django_leasequeue.runtime.patience import Patience
from django_leasequeue.runtime.sessions import (
    idle_seconds,
    is_unfinished,
    session_changed,
    watch,
    watch_new_connections,
)

__all__ = [
    "fresh_context",
    "freshen_connections",
    "keep_signals",
    "left_open",
    "open_transactions",
    "revive",
]

_START = contextvars.copy_context()
# Apart, because code changes it in place: a copied Context refers to the same object.
_DECIMAL = decimal.getcontext().copy()
_NAMES = (
    "SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGPIPE"
)  # fmt: skip
_SIGNALS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
_IDLE = 1.0
#: A connection that has not answered for so long is not usable.
_ANSWER_SECONDS = 5.0
_NOTHING: Mapping[str, int] = {}


def fresh_context() -> contextvars.Context:
    """Return a context as it was when the process started, to `run` one handler in.

    Context variables, the decimal context, the active language and the active time zone that the
    handler sets stay in it; LANGUAGE_CODE and TIME_ZONE are active at its start. Connections are
    the thread's, inside and outside.
    """
    context = _START.copy()
    context.run(_own_decimals)
    return context


def _own_decimals() -> None:
    decimal.setcontext(_DECIMAL.copy())


def _reset() -> None:
    translation.deactivate()
    timezone.deactivate()


_START.run(_reset)  # this module may have been imported in the middle of a request


def freshen_connections(*, after_idle: bool) -> None:
    """Close connections that are broken or over their age, and forget logged queries.

    Django does so between requests. CONN_MAX_AGE=0 would mean a new connection for each job, so
    here it means to keep one; `after_idle` asks the server whether it is still there, because it
    may have closed it meanwhile (wait_timeout).
    """
    watch_new_connections()
    reset_queries()
    for connection in connections.all(initialized_only=True):
        watch(connection)
        if connection.in_atomic_block or connection.connection is None:
            continue
        with Patience(connection, _ANSWER_SECONDS):
            _freshen(connection, after_idle=after_idle)


def _freshen(connection: BaseDatabaseWrapper, *, after_idle: bool) -> None:
    if connection.settings_dict["CONN_MAX_AGE"] != 0:
        connection.close_if_unusable_or_obsolete()
    if connection.connection is not None and (after_idle or connection.errors_occurred):
        if connection.is_usable():
            connection.errors_occurred = False
        else:
            connection.close()


def revive(connection: BaseDatabaseWrapper) -> None:
    """Drop a connection that the server has closed while the handler was busy with other things.

    It opens again with the next statement. Inside a transaction nothing is done; the server is
    asked only when no statement has run for a second.
    """
    if connection.connection is None or is_unfinished(connection):
        return
    if idle_seconds(connection) <= _IDLE:
        return
    with Patience(connection, _ANSWER_SECONDS):
        if not connection.is_usable():
            connection.close()


def open_transactions() -> dict[str, int]:
    """Return how many atomic blocks this thread is in, by alias; without those that are in none."""
    return {
        connection.alias: len(connection.atomic_blocks)
        for connection in connections.all(initialized_only=True)
        if connection.in_atomic_block
    }


def left_open(*, irregular: bool, outer: Mapping[str, int] = _NOTHING) -> list[str]:
    """Discard connections that the handler left unclean; return the aliases of open transactions.

    What was not committed is rolled back. A connection whose session has been changed (SET, LOCK
    TABLES, temporary tables, named locks, ...) is discarded, too, and after an `irregular` end
    every connection is: a statement may have been cut short. A transaction that was open before,
    in which `outer` atomic blocks were entered, is the caller's and stays as it is.
    """
    found: list[str] = []
    for connection in connections.all(initialized_only=True):
        if connection.alias in outer:
            if len(connection.atomic_blocks) > outer[connection.alias]:
                found.append(connection.alias)
            continue
        dirty, closed = _unfinished(connection), _closed_behind(connection)
        if dirty:
            found.append(connection.alias)
        if dirty or closed or irregular or session_changed(connection):
            _discard(connection)
    return found


def _unfinished(connection: BaseDatabaseWrapper) -> bool:
    try:
        return is_unfinished(connection)
    except Exception:  # noqa: BLE001  (of a session that a handler has closed behind Django's back)
        return True


def _closed_behind(connection: BaseDatabaseWrapper) -> bool:
    """Tell whether the driver's connection is closed, of which Django knows nothing."""
    raw = connection.connection
    return raw is not None and bool(getattr(raw, "closed", 0) or not getattr(raw, "open", 1))


def _discard(connection: BaseDatabaseWrapper) -> None:
    """Close the connection and let the next user of its alias begin with a new one."""
    alias, raw = connection.alias, connection.connection
    del connections[alias]
    try:
        if raw is not None:
            if dialect_for(connection).in_memory(connection):
                # With its last connection such a database is gone.
                connections[alias].ensure_connection()
            raw.close()
            # A pool counts what it has handed out, and replaces what comes back closed.
            pool = getattr(raw, "_pool", None)
            if pool is not None:
                pool.putconn(raw)
    except Exception as error:  # noqa: BLE001  (drivers differ; it is thrown away as broken)
        log_event("discard_failed", level=logging.DEBUG, error=type(error).__qualname__)


@contextmanager
def keep_signals() -> Iterator[None]:
    """Put back what the block changes of the main thread's signals; elsewhere do nothing.

    That is: the handlers of SIGTERM, SIGINT, SIGUSR1 and SIGALRM, the signal mask, the wake-up
    descriptor. A timer of SIGALRM that the block starts and leaves running is stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = [signal.getsignal(number) for number in _SIGNALS]
    mask, waker, timed = _mask(), _wakeup_fd(), _has_timer()
    try:
        yield
    finally:
        if _has_timer() and not timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip(_SIGNALS, handlers, strict=True):
            # None was not installed from Python, and cannot be put back from here.
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        if _wakeup_fd() != waker:
            signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        if sys.platform != "win32" and _mask() != mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _mask() -> set[int]:
    return set() if sys.platform == "win32" else signal.pthread_sigmask(signal.SIG_BLOCK, ())


def _has_timer() -> bool:
    return sys.platform != "win32" and signal.getitimer(signal.ITIMER_REAL)[0] > 0


def _wakeup_fd() -> int:
    """Return the wake-up descriptor, which can only be read by replacing it."""
    descriptor = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(descriptor, warn_on_full_buffer=False)
    return descriptor
