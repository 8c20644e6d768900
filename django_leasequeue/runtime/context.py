"""The job context: what a handler knows of its job and may ask of the queue."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from django_leasequeue.codec import decode_payload, encode
from django_leasequeue.conf import get_conf
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.lease import Claimed
from django_leasequeue.exceptions import JobError, LeaseLost
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.completion import Completion
from django_leasequeue.runtime.effects import effect_once
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from django_leasequeue.runtime.isolation import revive
from django_leasequeue.runtime.patience import Patience
from django_leasequeue.runtime.progress import checked_progress

__all__ = ["JobContext", "encode_result"]

T = TypeVar("T")


def encode_result(result: Any) -> str | None:
    """Return a result as JSON text, None for None.

    Raises JobError, whose text shows no values, for what cannot be stored.
    """
    return None if result is None else encode_data(result, what="result")


def encode_data(data: Any, *, what: str) -> str:
    """Return `data` as JSON text of at most MAX_RESULT_BYTES; JobError, without values, if not."""
    try:
        return encode(data, what=what, limit=get_conf().MAX_RESULT_BYTES)
    except (TypeError, ValueError) as error:
        raise JobError(f"the {what} cannot be stored: {error}") from None


class JobContext:
    """One attempt of one job, as its handler sees it.

    `attempt` is 1 at the first run; `claims` also counts runs that were given back. Times are
    aware UTC datetimes.
    """

    def __init__(
        self,
        job: Claimed,
        payload: dict[str, Any],
        hold: Hold,
        *,
        alias: str,
        interrupts: Interrupts,
        stopping: Callable[[], bool],
        ends_at: float | None = None,
    ) -> None:
        #: Alias of the database in which `complete` commits: give it to `.using()`.
        self.using = alias
        #: The job's id.
        self.job_id = job.job_id
        #: Its job type, `"report.generate"` say.
        self.job_type = job.job_type
        #: The queue that it was claimed from.
        self.queue = job.queue
        #: Its priority, -100 to 100.
        self.priority = job.priority
        #: Name of the worker process, as in the job's `leased_by`.
        self.worker = job.leased_by
        #: Its payload, in the version that this code declares.
        self.payload = payload
        #: What the middleware put into the job's context when it was enqueued.
        self.context = decode_payload(job.context, "context")
        #: 1 at the first run; runs that were given back do not count.
        self.attempt = job.attempt
        #: The attempt after whose failure the job is dead.
        self.max_attempts = job.max_attempts
        #: Number of this run; counts those that were given back, and never goes down.
        self.claims = job.number
        #: The column's value, 64 hex digits, unique in the queue: for remote APIs (seed S1).
        self.idempotency_key = job.idempotency_key
        #: When the job was enqueued, aware UTC, by the database's clock.
        self.enqueued_at = job.enqueued_at
        #: The schedule whose tick made the job, by name; "" for any other job.
        self.schedule = job.schedule
        #: The tick, aware UTC, however late the job runs; None for a job made by hand.
        self.tick_at = job.tick_at
        #: Its signature, 64 hex digits; "" when signing is off.
        self.signature = job.signature
        self._hold = hold
        self._job = job
        self._alias = alias
        self._stopping = stopping
        self._ends_at = ends_at
        self._checkpoint = job.checkpoint
        self._settled: Outcome | None = None
        self._interrupts = interrupts
        self._completion = Completion(job, hold, alias, interrupts, self._mark_done)

    def __repr__(self) -> str:
        return f"<JobContext {self.job_type} #{self.job_id} attempt {self.attempt}>"

    @property
    def is_last_attempt(self) -> bool:
        """Tell whether a failure of this attempt is the job's death."""
        return self.attempt >= self.max_attempts

    @property
    def stopping(self) -> bool:
        """Tell whether the worker is draining: a long handler may end early, or save its place."""
        return self._stopping()

    @property
    def completed(self) -> bool:
        """Tell whether this attempt has completed its job through `complete`."""
        return self._settled is not None

    @property
    def settled(self) -> Outcome | None:
        """How this attempt has ended its job in a transaction of its own; not for handlers."""
        return self._settled

    @property
    def leased_until(self) -> datetime:
        """Until when the lease is trusted without another renewal, by this host's clock."""
        return datetime.now(UTC) + timedelta(seconds=self._hold.until - ticks())

    @property
    def deadline(self) -> datetime | None:
        """When this attempt's time limit ends it, by this host's clock; None without a limit."""
        remaining = self.remaining()
        return None if remaining is None else datetime.now(UTC) + timedelta(seconds=remaining)

    def remaining(self) -> float | None:
        """Return the seconds left of the attempt's time limit, 0 at the least; None without one.

        Raises nothing.
        """
        return None if self._ends_at is None else max(0.0, self._ends_at - ticks())

    @property
    def last_checkpoint(self) -> Any:
        """What `checkpoint` saved last, in this attempt or one before; None if nothing was."""
        return None if self._checkpoint is None else json.loads(self._checkpoint)

    def checkpoint(self, data: Any) -> None:
        """Keep `data` (JSON) for the attempts to come: `last_checkpoint` of the next one has it.

        Saved in the caller's transaction on the queue's database, and then only together with its
        rows; without a transaction at once. Prolongs the lease. Raises LeaseLost when it is not
        held any more, and JobError for what cannot be stored; nothing is saved then.
        """
        text = encode_data(data, what="checkpoint")
        self.ensure_lease()
        connection = connections[self._alias]
        revive(connection)
        since = ticks()
        with Patience(connection, self._job.seconds), connection.cursor() as cursor:
            save_checkpoint(connection, cursor, self._job.lease, text, self._job.seconds)
        # What is rolled back has prolonged nothing, and is no checkpoint.
        transaction.on_commit(partial(self._saved, text, since), using=self._alias)

    def _saved(self, text: str, since: float) -> None:
        self._checkpoint = text
        self._hold.prolong(since)
        self._hold.let_go(committed=True)

    def ensure_lease(self) -> None:
        """Raise LeaseLost when the lease is lost or can no longer be trusted; asks no database."""
        if not (self._hold.trusted or self._hold.regained()):
            raise LeaseLost(f"job {self.job_id}: the lease is lost")

    def progress(self, fraction: float | None = None, text: str = "") -> None:
        """Tell how far the handler is: `fraction` from 0 to 1, `text` of up to 200 characters.

        Shown to operators about two seconds later, the newest value only. Costs nothing worth
        counting, asks no database, may be called from any thread. Raises JobError for other
        values.
        """
        self._hold.tell(checked_progress(fraction, text))

    def effect_key(self, name: str) -> str:
        """Return a key for a remote API: stable over all attempts of this job, 64 hex digits.

        Another `name` gives another key (seed S1: send the stable key when the API takes one).
        Raises nothing.
        """
        return hashlib.sha256(f"{self.idempotency_key}:{name}".encode()).hexdigest()

    @contextmanager
    def effect(self, name: str) -> Iterator[bool]:
        """Commit the block's rows and the note that the effect `name` happened, or neither.

        Yields True the first time in the job's life, False when an earlier call, attempt or run
        before a requeue has committed it. The block runs either way, in a durable transaction on
        the queue's database that prolongs the lease and must end within it; the job goes on.
        Raises LeaseLost, with nothing written, when the lease is not held any more, and JobError
        after `complete()`, or for a name that cannot be stored; whatever the block raises rolls
        everything back.
        """
        if self.completed:
            raise JobError("effect() was called after complete(): the job is done")
        self.ensure_lease()
        with effect_once(self._job, self._hold, self._alias, self._interrupts, name) as first:
            yield first

    @contextmanager
    def complete(self, result: Any = None) -> Iterator[None]:
        """Commit the block's rows, the job's `done` and its attempt row together, or none of them.

        The rule of seed S1. The block runs in a durable transaction on the queue's database;
        `result` (JSON data) is encoded after the block, before the commit. Do slow work before
        the block: it must end within three quarters of a lease. Raises LeaseLost, with nothing
        written, when the lease is not held any more, and JobError when it is called twice, or for
        a result that cannot be stored; whatever the block raises rolls everything back.
        """
        if self.completed:
            raise JobError("complete() was called twice for one job")
        self.ensure_lease()
        with self._completion.transaction(
            lambda: Outcome(End.COMPLETED, result=encode_result(result)), hold_first=True
        ):
            yield

    async def acomplete(self, fn: Callable[[], T], result: Any = None) -> T:
        """Run `fn` inside `complete(result)` from a coroutine handler, and return what it returns.

        `fn` is a plain function, and runs on the handler's own thread and connections: await what
        is slow before. `result` is JSON data. Raises as `complete` and `fn` do, LeaseLost among
        them, with nothing written; TypeError for a coroutine function.
        """
        return await sync_to_async(self._complete_with)(fn, result)

    def _complete_with(self, fn: Callable[[], T], result: Any) -> T:
        with self.complete(result):
            returned = fn()
            if inspect.iscoroutine(returned):
                returned.close()
                raise TypeError("acomplete() needs a plain function: a transaction has one thread")
            return returned

    @contextmanager
    def transaction(self, outcome: Callable[[], Outcome]) -> Iterator[None]:
        """Run an `atomic=True` handler: as `complete`, without a lock on the job at the start.

        `outcome` tells at the end how the handler ended. Raises as `complete` does. Not for
        handlers.
        """
        self.ensure_lease()
        with self._completion.transaction(outcome, hold_first=False):
            yield

    def _mark_done(self, outcome: Outcome) -> None:
        self._hold.completed = True
        self._settled = replace(outcome, result=None, settled=True)
