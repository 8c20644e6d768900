"""Completion: a handler's business rows, `done` and the attempt row in one fenced transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.attempts import Fate, resolve
from django_leasequeue.core.dialect import dialect_for, is_unknown_commit
from django_leasequeue.core.guard import guarded
from django_leasequeue.core.keys import held_keys
from django_leasequeue.core.lease import Claimed, hold_within
from django_leasequeue.core.settle import finish_within
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import Outcome
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import revive

__all__ = ["Completion"]

_KEY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Completion:
    """How one attempt completes: `mark_done` is called once it is committed."""

    job: Claimed
    hold: Hold
    alias: str
    interrupts: Interrupts
    mark_done: Callable[[], None]

    @contextmanager
    def transaction(self, outcome: Callable[[], Outcome], *, hold_first: bool) -> Iterator[None]:
        """Run the block in a transaction that completes the job, or in none.

        `outcome` is called after the block, before the commit: what it raises rolls everything
        back. `hold_first` locks the job's row and prolongs the lease before the block; without
        it the fence comes last alone. Afterwards the job is done together with the block's rows.
        Raises LeaseLost, or the block's or the database's error, with nothing of it kept. An
        on_commit callback that raises changes nothing: the job is done, the error is logged.
        """
        connection = connections[self.alias]
        committed: list[bool] = []
        held_back: list[bool] = []
        endings: list[Outcome] = []
        revive(connection)
        try:
            with transaction.atomic(using=self.alias, durable=True):
                transaction.on_commit(lambda: committed.append(True), using=self.alias)
                if hold_first:
                    self._hold(connection)
                with guarded(connection) as check:
                    yield
                    endings.append(outcome())
                    check()
                    self._await_key(connection)
                held_back.append(self.interrupts.hold_back())
                with connection.cursor() as cursor:
                    finish_within(connection, cursor, self.job.lease, endings[0])
        except Exception as error:
            if committed:
                _log_callback(self.job, error)
            elif not (held_back and _stood(connection, self.job, endings[0], error)):
                raise
            committed.append(True)
        finally:
            if committed:
                self.mark_done()
            if held_back:
                self.interrupts.restore(was_open=held_back[0])

    def _await_key(self, connection: BaseDatabaseWrapper) -> None:
        """Return once the job's key can be given back, keeping the lease alive meanwhile.

        An enqueuer that met the key may hold its entry until it commits: waiting for the lock in
        the final write could outlast the lease, or the server's patience.
        """
        keys = {self.job.job_id: self.job.live_key}
        while True:
            with connection.cursor() as cursor:
                if not held_keys(dialect_for(connection), cursor, keys):
                    return
            self._hold(connection)
            log_event("key_awaited", level=logging.DEBUG, job_id=self.job.job_id)
            time.sleep(_KEY_SECONDS)

    def _hold(self, connection: BaseDatabaseWrapper) -> None:
        since = ticks()
        with connection.cursor() as cursor:
            hold_within(connection, cursor, self.job.lease, self.job.seconds)
        self.hold.prolong(since)


def _stood(
    connection: BaseDatabaseWrapper, job: Claimed, ending: Outcome, error: Exception
) -> bool:
    """Tell whether a COMMIT whose answer was lost was applied; False for any other error."""
    if not is_unknown_commit(connection, error):
        return False
    connection.close()
    return resolve(connection, job.lease, ending.end) is Fate.ENDED


def _log_callback(job: Claimed, error: Exception) -> None:
    log_event(
        "on_commit_failed",
        level=logging.ERROR,
        job_id=job.job_id,
        job_type=job.job_type,
        error=type(error).__qualname__,
    )
