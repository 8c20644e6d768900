"""Ticking in the worker's loop: on time to the next tick, at one statement a second at most."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.declared import sync_declared
from django_leasequeue.core.ticking import KeyAwaited, Ticked, due_schedules, seconds_to_next, tick
from django_leasequeue.events import log_event
from django_leasequeue.registry import registry
from django_leasequeue.runtime.clock import ticks

__all__ = ["Ticking"]

#: How long a schedule that an operator has made or enabled may be overlooked; the first of all.
_LOOK = 1.0
_LOOK_FOR_ANY = 4.0
#: A rival holds the row, or the two clocks differ by a little.
_SHORTEST = 0.01
#: What is due after so many seconds of one pass waits for the next.
_PASS = 0.2
#: Seconds before this worker looks again at a row that cannot tick, and one whose key is taken by
#: a transaction that has not ended: the insert has waited for it already.
_RETRY = 60.0
_AWAIT = 10.0


class Ticking:
    """Brings the declared schedules into the database at first, then takes what is due.

    With `once` that is all: a draining worker takes what is due when it starts. Declared schedules
    live in the queue's own database: a worker on another one leaves them alone, or each of them
    would tick in both.
    """

    def __init__(self, worker: str, *, database: str, once: bool = False) -> None:
        self._worker = worker
        self._once = once
        at_home = database == get_conf().DATABASE
        self._declared = [kind for kind in registry if at_home and kind.rule is not None]
        self._names = frozenset(kind.name for kind in self._declared)
        self._synced = False
        self._served = 0
        self._later: dict[int, float] = {}
        self._in_vain: set[int] = set()
        self._all_in_vain = False
        self._patience = _SHORTEST
        self._due = 0.0

    @property
    def over(self) -> bool:
        """Tell whether nothing will be taken any more: a draining worker has taken what was due."""
        return self._due == float("inf")

    def seconds_left(self) -> float:
        """Return how long the loop may wait before the next look."""
        return max(0.0, self._due - ticks())

    def run_if_due(
        self,
        connection: BaseDatabaseWrapper,
        stopping: Callable[[], bool],
        on_ticked: Callable[[Sequence[Ticked]], None],
    ) -> bool:
        """Take what is due, if it is time to look; tell whether jobs were enqueued.

        `on_ticked` is called with what was taken.
        """
        if ticks() < self._due:
            return False
        if not self._synced:
            self._sync(connection)
        left = seconds_to_next(connection, self._names)
        taken: list[Ticked] = []
        if left is not None and left <= 0:
            taken = self._take(connection, stopping)
            on_ticked(taken)
            left = seconds_to_next(connection, self._names)
        due = left is not None and left <= 0
        ended = self._once and (not due or self._all_in_vain)
        held_up = due and not taken
        self._patience = min(_LOOK, 2 * self._patience) if held_up else _SHORTEST
        self._due = float("inf") if ended else ticks() + self._pause(left)
        return any(ticked.job_id is not None for ticked in taken)

    def _sync(self, connection: BaseDatabaseWrapper) -> None:
        synced = sync_declared(connection, self._declared)
        self._declared = [kind for kind in self._declared if kind.name in synced.pending]
        self._synced = not synced.pending
        for name in synced.kept:
            log_event(
                "schedule_not_declared", level=logging.WARNING, worker=self._worker, schedule=name
            )

    def _take(self, connection: BaseDatabaseWrapper, stopping: Callable[[], bool]) -> list[Ticked]:
        """Take what is due, for a bounded time: handlers have to be looked after meanwhile."""
        taken: list[Ticked] = []
        until = ticks() + _PASS
        self._all_in_vain = True  # until one says otherwise
        for number in due_schedules(connection, self._names, self._served):
            if stopping():
                break
            self._served = number
            ticked = self._tick(connection, number)
            self._note(number, in_vain=not ticked)
            self._log(ticked)
            taken += ticked
            if ticks() > until:
                break
        return taken

    def _tick(self, connection: BaseDatabaseWrapper, number: int) -> list[Ticked]:
        """Tick one, unless it is put off here: what cannot tick now would fill every pass."""
        if ticks() < self._later.get(number, 0.0):
            return []
        self._later.pop(number, None)
        try:
            ticked = tick(connection, number)
        except KeyAwaited:
            log_event("schedule_awaits_key", level=logging.DEBUG, worker=self._worker)
            self._later[number] = ticks() + _AWAIT
            return []
        if any(one.error for one in ticked):
            self._later[number] = ticks() + _RETRY
        return ticked

    def _note(self, number: int, *, in_vain: bool) -> None:
        """Remember what was looked at since a tick was taken: met again, a rival is at the rest.

        Once is no sign of that: a row that is only planned takes no tick, and is due no more.
        """
        self._all_in_vain = in_vain and number in self._in_vain
        if in_vain:
            self._in_vain.add(number)
        else:
            self._in_vain.clear()

    def _pause(self, left: float | None) -> float:
        return _LOOK_FOR_ANY if left is None else max(self._patience, min(_LOOK, left))

    def _log(self, taken: list[Ticked]) -> None:
        for ticked in taken:
            if ticked.error:
                log_event(
                    "schedule_refused",
                    level=logging.ERROR,
                    worker=self._worker,
                    schedule=ticked.schedule,
                    job_type=ticked.job_type,
                    error=ticked.error,
                )
                continue
            log_event(
                "schedule_ticked",
                worker=self._worker,
                schedule=ticked.schedule,
                job_id=ticked.job_id,
                job_type=ticked.job_type,
                queue=ticked.queue,
                tick_at=ticked.tick_at.isoformat() if ticked.tick_at else None,
                late_ms=round(ticked.late * 1000),
            )
