"""Completion: a handler's business rows, `done` and the attempt row in one fenced transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.attempts import Fate, resolve
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.keys import held_keys
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import finish_within
from django_leasequeue.events import log_event
from django_leasequeue.outcomes import Outcome
from django_leasequeue.runtime.fenced import fenced, hold_row, lock_row
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts

__all__ = ["Completion"]

_KEY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Completion:
    """How one attempt completes: `mark_done` is called once it is committed, with its outcome."""

    job: Claimed
    hold: Hold
    alias: str
    interrupts: Interrupts
    mark_done: Callable[[Outcome], None]

    def transaction(
        self, outcome: Callable[[], Outcome], *, hold_first: bool
    ) -> AbstractContextManager[None]:
        """Run the block in a transaction that completes the job, or in none.

        `outcome` is called after the block, before the commit: what it raises rolls everything
        back. `hold_first` locks the job's row under the fence before the block; without
        it the fence comes last alone. Afterwards the job is done together with the block's rows.
        Raises LeaseLost, or the block's or the database's error, with nothing of it kept. An
        on_commit callback that raises changes nothing: the job is done, the error is logged.
        """
        deed = _Completing(self.job, self.hold, outcome, self.mark_done, hold_first)
        return fenced(deed, self.alias, self.interrupts)


@dataclass(slots=True)
class _Completing:
    """The deed: the job is done."""

    job: Claimed
    hold: Hold
    outcome: Callable[[], Outcome]
    mark_done: Callable[[Outcome], None]
    hold_first: bool
    _endings: list[Outcome] = field(default_factory=list)

    def begin(self, connection: BaseDatabaseWrapper) -> None:
        if self.hold_first:
            lock_row(connection, self.job, self.hold)

    def prepare(self) -> None:
        self._endings.append(self.outcome())

    def wait(self, connection: BaseDatabaseWrapper) -> None:
        """Return once the job's key can be given back, keeping the lease alive meanwhile.

        An enqueuer that met the key may hold its entry until it commits: waiting for the lock in
        the final write could outlast the lease, or the server's patience.
        """
        keys = {self.job.job_id: self.job.live_key}
        while self.job.live_key is not None:
            with connection.cursor() as cursor:
                if not held_keys(dialect_for(connection), cursor, keys):
                    return
            self._hold(connection)
            log_event("key_awaited", level=logging.DEBUG, job_id=self.job.job_id)
            time.sleep(_KEY_SECONDS)

    def seal(self, connection: BaseDatabaseWrapper) -> None:
        with connection.cursor() as cursor:
            finish_within(connection, cursor, self.job.lease, self._endings[0])

    def stands(self, connection: BaseDatabaseWrapper) -> bool:
        return resolve(connection, self.job.lease, self._endings[0]) is Fate.ENDED

    def committed(self) -> None:
        self.mark_done(self._endings[0])

    def _hold(self, connection: BaseDatabaseWrapper) -> None:
        hold_row(connection, self.job, self.hold)
