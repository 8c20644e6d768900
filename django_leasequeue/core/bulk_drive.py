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
        self._limit = self._window = plan.options.chunk

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
            if self._is_canary(chunk):
                continue  # what its pause allows the next chunk is told by the row
            if chunk.pause:
                # The next chunk looks whether the run was ended meanwhile.
                time.sleep(min(chunk.pause, _LOOK_SECONDS))
            else:
                self._widen(chunk)

    def _may_go_on(self, chunk: Chunk) -> bool:
        if self._is_canary(chunk):
            return self._await_canary(chunk)
        return chunk.state in (State.CANARY, State.RUNNING)

    def _is_canary(self, chunk: Chunk) -> bool:
        """Tell whether those that go first have all gone."""
        return chunk.state is State.CANARY and len(chunk.canary) >= self._plan.options.canary

    def _widen(self, chunk: Chunk) -> None:
        """Look at more jobs at once where few match; never at more than a few thousand."""
        if len(chunk.changed) + len(chunk.left_out) < self._limit // 2:
            self._window = min(_MOST_WINDOW, max(CHUNK, self._window * 2))
        else:
            self._window = self._limit

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
        return self._state() is State.RUNNING

    def _state(self) -> State:
        runs = BulkRun.objects.using(self._connection.alias).filter(pk=self._plan.id)
        return State(runs.values_list("state", flat=True).get())
