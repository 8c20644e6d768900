"""Fenced transactions of a handler's: under the job's lease from the first to the last statement.

What the block writes is committed together with what the queue writes, or not at all. The part
between the last statement and COMMIT's answer is not interrupted, and a lost answer is looked up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import dialect_for, is_unknown_commit
from django_leasequeue.core.guard import guarded
from django_leasequeue.core.lease import Claimed, hold_within, lock_within
from django_leasequeue.events import log_event
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import revive
from django_leasequeue.runtime.patience import Patience

__all__ = ["Deed", "fenced", "hold_row", "lock_row", "log_callback"]

#: The part of a lease that is left of a new one: of sixty seconds it was claimed two ago.
_NEW = 0.92


class Deed(Protocol):
    """What the queue does in a fenced transaction, step by step."""

    @property
    def job(self) -> Claimed:
        """The job under whose lease it is done."""

    @property
    def hold(self) -> Hold:
        """The hold on that lease."""

    def begin(self, connection: BaseDatabaseWrapper) -> None:
        """Before the block."""

    def prepare(self) -> None:
        """After the block: whatever can still fail without a database."""

    def wait(self, connection: BaseDatabaseWrapper) -> None:
        """Then: whatever has to be waited for."""

    def seal(self, connection: BaseDatabaseWrapper) -> None:
        """The last statements, under the fence."""

    def stands(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell, on a new connection, whether a COMMIT whose answer was lost was applied."""

    def committed(self) -> None:
        """Called once it is committed."""


@contextmanager
def fenced(deed: Deed, alias: str, interrupts: Interrupts) -> Iterator[None]:
    """Run the block and the deed in one durable transaction on the queue's database.

    Raises LeaseLost, or the block's or the database's error, with nothing of it kept. An on_commit
    callback that raises changes nothing: what is committed stands, the error is logged.
    """
    connection = connections[alias]
    committed: list[bool] = []
    held_back: list[bool] = []
    revive(connection)
    patience = Patience(connection, deed.hold.seconds, deed.hold)
    patience.start()
    try:
        with transaction.atomic(using=alias, durable=True):
            transaction.on_commit(lambda: committed.append(True), using=alias)
            deed.begin(connection)
            with guarded(connection) as check:
                patience.stop()
                try:
                    yield
                    deed.prepare()
                finally:
                    patience.start()
                check()
                deed.wait(connection)
            held_back.append(interrupts.hold_back())
            patience.restart()
            deed.seal(connection)
        # Inside a test's transaction the callback above may wait for the end of the test.
        committed.append(True)
    except Exception as error:
        if committed:
            log_callback(deed.job, error)
        elif not (held_back and _stood(connection, deed, error, patience)):
            raise
        committed.append(True)
    finally:
        patience.stop()
        deed.hold.let_go(committed=bool(committed))
        if committed:
            deed.committed()
        if held_back:
            interrupts.restore(was_open=held_back[0])


def hold_row(connection: BaseDatabaseWrapper, job: Claimed, hold: Hold) -> None:
    """Lock the job's row, prolong its lease and trust it so long; LeaseLost when it is not held."""
    since = ticks()
    with connection.cursor() as cursor:
        hold_within(connection, cursor, job.lease, job.seconds)
    hold.prolong(since)


def lock_row(connection: BaseDatabaseWrapper, job: Claimed, hold: Hold) -> None:
    """Lock the job's row; LeaseLost when it is not held. Prolong a lease that is not new, too.

    Of a new one there are three quarters left when control ends its handler, at least. SQLite can
    lock no row.
    """
    if hold.trusted_until - ticks() < _NEW * hold.seconds or dialect_for(connection).one_writer:
        hold_row(connection, job, hold)
        return
    lock_within(connection, job.lease)


def _stood(
    connection: BaseDatabaseWrapper, deed: Deed, error: Exception, patience: Patience
) -> bool:
    """Tell whether a COMMIT whose answer was lost was applied; False for any other error."""
    if not is_unknown_commit(connection, error):
        return False
    connection.close()
    patience.start()
    return deed.stands(connection)


def log_callback(job: Claimed, error: Exception) -> None:
    """Log that an on_commit callback has raised after its transaction was committed."""
    log_event(
        "on_commit_failed",
        level=logging.ERROR,
        job_id=job.job_id,
        job_type=job.job_type,
        error=type(error).__qualname__,
    )
