"""Driving a bulk run: chunk after chunk, at its rate, with its canary first, until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.bulk_canary import leave, look
from django_leasequeue.core.bulk_chunk import Chunk, take_chunk
from django_leasequeue.core.bulk_plan import CHUNK, Plan, State
from django_leasequeue.models import BulkRun

__all__ = ["Drive", "Told"]

#: Is told of every chunk after its commit.
Told = Callable[[Chunk], object]

_TRIES_FOR_LOCKED = 5
_MOST_WINDOW = 20 * CHUNK
#: How soon a waiting run notices that it was cancelled.
_LOOK_SECONDS = 0.5


class Drive:
    """A process's own work on a run."""

    def __init__(self, connection: BaseDatabaseWrapper, plan: Plan, told: Told) -> None:
        self._connection, self._plan, self._told = connection, plan, told
        rate = plan.options.rate
        self._limit = CHUNK if rate is None else max(1, min(CHUNK, int(rate)))
        self._window = self._limit
        self._began = time.monotonic()
        #: What the run had changed at that time; other processes may drive it as well.
        self._before: int | None = None

    def to_the_end(self) -> None:
        """Take chunks until the run is over or stops."""
        tried = 1
        while True:
            patient = tried < _TRIES_FOR_LOCKED
            chunk = take_chunk(
                self._connection, self._plan, self._limit, self._window, patient=patient
            )
            if chunk.waits:
                time.sleep(0.02 * tried)
                tried += 1
                continue
            tried = 1
            if chunk.changed or chunk.left_out:
                self._told(chunk)
            if not self._may_go_on(chunk):
                return
            self._widen(chunk)

    def _may_go_on(self, chunk: Chunk) -> bool:
        if chunk.state is State.CANARY and len(chunk.canary) >= self._plan.options.canary:
            return self._await_canary(chunk)
        if chunk.state not in (State.CANARY, State.RUNNING):
            return False
        return self._pace(chunk)

    def _widen(self, chunk: Chunk) -> None:
        """Look at more jobs at once where few match; never at more than a few thousand."""
        if len(chunk.changed) + len(chunk.left_out) < self._limit // 2:
            self._window = min(_MOST_WINDOW, max(CHUNK, self._window * 2))
        else:
            self._window = self._limit

    def _pace(self, chunk: Chunk) -> bool:
        """Wait until the run's rate allows more; False when the run was ended meanwhile."""
        rate = self._plan.options.rate
        if rate is None:
            return True
        if self._before is None:
            self._before = chunk.total - len(chunk.changed)
        due = self._began + (chunk.total - self._before) / rate
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            if self._state() not in (State.CANARY, State.RUNNING):
                return False
        return True

    def _await_canary(self, chunk: Chunk) -> bool:
        until = time.monotonic() + self._plan.options.canary_wait
        while self._state() is State.CANARY:
            verdict = look(self._connection, chunk.canary)
            if verdict.good:
                leave(self._connection, self._plan.id, State.RUNNING, "")
            elif verdict.good is False or time.monotonic() > until:
                leave(self._connection, self._plan.id, State.STOPPED, verdict.why)
            else:
                time.sleep(_LOOK_SECONDS)
        # The wait saves up nothing, whatever process ended it.
        self._began, self._before = time.monotonic(), chunk.total
        return self._state() is State.RUNNING

    def _state(self) -> State:
        runs = BulkRun.objects.using(self._connection.alias).filter(pk=self._plan.id)
        return State(runs.values_list("state", flat=True).get())
