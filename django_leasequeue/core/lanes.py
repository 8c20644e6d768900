"""Lanes: where due jobs are looked for. A lane is one queue and one priority.

A claim that had to sort would lock every candidate, so it ranges over one lane after the other, in
the claim index's own order. Lanes are found by index dives. A lane's low-water mark starts its
range at the last claimed time, past the entries that a held read view keeps the server from
purging.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import clean_text
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.lease import Lease
from django_leasequeue.core.ready_queues import ReadyQueues, priorities_of
from django_leasequeue.core.transaction import ask, tagged

__all__ = ["ALL_QUEUES", "Lane", "Lanes", "as_mark", "due_range", "parse_queues"]

ALL_QUEUES = "*"
_INDEX = "leasequeue_job_claim"
_CACHE_SECONDS = 1.0
#: Finding the lanes takes a quarter of the time at most: there may be thousands of queues.
_COST = 4.0
#: Lanes without jobs that are still probed at each poll, so that a new job is found at once.
_REMEMBERED = 8
#: So many claims are narrow after one that asked for jobs that are to wait in vain.
_NARROW = 8
#: What is known of a lane that is no longer looked at is kept for so long.
_MEMORY_SECONDS = 300.0


class Lane(NamedTuple):
    """One queue and one priority."""

    queue: str
    priority: int


@dataclass(slots=True)
class _State:
    """What this worker knows of a lane; `mark` is a time as a statement's parameter."""

    mark: Any = None
    look_at: float = 0.0
    busy: bool = False
    #: For so many claims more none asks for jobs that are to wait: what is next must not.
    narrow: int = 0
    seen: float = 0.0


def parse_queues(queues: str | Iterable[str]) -> tuple[str, ...]:
    """Return queue names from "a,b", "*" or a list of names.

    Raises ValueError for an empty list, an empty or repeated name, and "*" beside others.
    """
    names = queues.split(",") if isinstance(queues, str) else list(queues)
    names = [name.strip() for name in names]
    if not names or any(not name or clean_text(name, 64) != name for name in names):
        raise ValueError("queues are names of 1 to 64 characters, separated by commas, or '*'")
    if len(set(names)) < len(names):
        raise ValueError("a queue is named twice")
    if ALL_QUEUES in names and len(names) > 1:
        raise ValueError("'*' already means every queue: it stands alone")
    return tuple(names)


@dataclass(slots=True)
class Lanes:
    """The lanes of a worker's queues, in the order in which they are to be claimed from.

    Named queues are strict in the order given; "*" goes round all queues. Within a queue larger
    priorities come first. Paused queues are left out within a second.
    """

    queues: tuple[str, ...]
    #: How many jobs the database refused to reserve since this worker's last successful claim.
    refusals: int = 0
    #: What went wrong in a claim that had jobs already.
    owed: Exception | None = None
    #: What a claim has reserved, or may have, and has not returned.
    unread: list[Lease] = field(default_factory=list)
    _ready: ReadyQueues = field(default_factory=ReadyQueues)
    _cache: list[tuple[str, list[Lane]]] = field(default_factory=list)
    _due_at: float = float("-inf")
    _states: dict[Lane, _State] = field(default_factory=dict)
    _last: str = ""

    def raise_owed(self) -> None:
        """Raise what the last claim has met and has not raised."""
        owed, self.owed = self.owed, None
        if owed is not None:
            raise owed

    def ordered(self, connection: BaseDatabaseWrapper) -> list[Lane]:
        """Return the lanes to look at now, best first."""
        now = time.monotonic()
        groups = self._cache
        if now >= self._due_at:
            recent = self._recent()
            # What has no ready job at this very moment is looked at again at the next poll.
            groups = self._read(connection)
            self._cache = [
                (queue, self._with_remembered(queue, lanes, recent.get(queue, [])))
                for queue, lanes in groups
            ]
            self._due_at = now + max(_CACHE_SECONDS, _COST * (time.monotonic() - now))
        if self.queues == (ALL_QUEUES,):
            # After the queue last served, not by counting: queues without jobs take no turns.
            names = [queue for queue, _lanes in groups]
            start = names.index(self._last) + 1 if self._last in names else 0
            groups = groups[start:] + groups[:start]
        return [lane for _queue, lanes in groups for lane in lanes]

    def has_due(self, connection: BaseDatabaseWrapper, lane: Lane) -> bool:
        """Tell, without locking, whether the lane seems to have a due job."""
        state = self._states.setdefault(lane, _State())
        due = self._look(connection, lane, state)
        if not due:
            state.narrow = 0  # whatever must not wait is gone
        return due

    def _look(self, connection: BaseDatabaseWrapper, lane: Lane, state: _State) -> bool:
        if time.monotonic() >= state.look_at:
            return self._full_look(connection, lane, state)
        if state.busy:
            return True
        return bool(ask(connection, *self._probe(dialect_for(connection), lane, state.mark)))

    def mark_of(self, lane: Lane) -> Any:
        """Return the parameter at which the lane's range starts, None for its beginning."""
        return self._states.setdefault(lane, _State()).mark

    def claimed(self, lane: Lane, mark: Any, *, full: bool) -> None:
        """Note that a claim took jobs up to `mark`; `full`: as many as it asked for."""
        state = self._states.setdefault(lane, _State())
        state.mark, state.busy, state.seen = mark, full, time.monotonic()
        self._last, self.refusals = lane.queue, 0

    def empty(self, lane: Lane) -> None:
        """Note that a claim found the lane empty."""
        self._states.setdefault(lane, _State()).busy = False

    def is_narrow(self, lane: Lane) -> bool:
        """Tell whether jobs that are to wait are not worth asking for."""
        return self._states.setdefault(lane, _State()).narrow > 0

    def note_ahead(self, lane: Lane, *, in_vain: bool) -> None:
        """Note that a claim asked for jobs that are to wait in vain, or one more that it did not.

        Whoever asks locks what it leaves, and others take the lane for empty meanwhile.
        """
        state = self._states.setdefault(lane, _State())
        state.narrow = _NARROW if in_vain else max(0, state.narrow - 1)

    def forget(self) -> None:
        """Look everywhere anew at the next claim, marks and cache put aside."""
        self._due_at = float("-inf")
        for state in self._states.values():
            state.look_at, state.mark, state.busy, state.narrow = 0.0, None, False, 0

    def _recent(self) -> dict[str, list[Lane]]:
        """Return the lanes of each queue, last claimed from first; forget those long unused."""
        oldest = time.monotonic() - _MEMORY_SECONDS
        for lane, state in list(self._states.items()):
            if max(state.seen, state.look_at) < oldest:
                del self._states[lane]
        recent: dict[str, list[Lane]] = {}
        for lane in sorted(self._states, key=lambda lane: -self._states[lane].seen):
            recent.setdefault(lane.queue, []).append(lane)
        return recent

    def _with_remembered(self, queue: str, lanes: list[Lane], recent: list[Lane]) -> list[Lane]:
        known = {*lanes, *recent[:_REMEMBERED]}
        if not known and self.queues != (ALL_QUEUES,):
            known = {Lane(queue, 0)}
        return sorted(known, key=lambda lane: -lane.priority)

    def _read(self, connection: BaseDatabaseWrapper) -> list[tuple[str, list[Lane]]]:
        named = self.queues != (ALL_QUEUES,)
        found = priorities_of(connection, self.queues) if named else self._ready.read(connection)
        return [
            (queue, [Lane(queue, priority) for priority in priorities])
            for queue, priorities in found
        ]

    def _full_look(self, connection: BaseDatabaseWrapper, lane: Lane, state: _State) -> bool:
        """Look past the mark, which only this resets: late commits are seen by it.

        Its cost grows with what the server could not purge, so it runs at most every second and
        never takes more than a twentieth of the time.
        """
        dialect = dialect_for(connection)
        began = time.monotonic()
        rows = ask(connection, *self._probe(dialect, lane, None))
        ended = time.monotonic()
        state.look_at = ended + max(_CACHE_SECONDS, 20 * (ended - began))
        if not rows:
            return False
        state.mark = as_mark(dialect, rows[0][0])
        return True

    @staticmethod
    def _probe(dialect: Dialect, lane: Lane, mark: Any) -> tuple[str, list[Any]]:
        range_, params = due_range(dialect, lane, mark)
        column = dialect.select_moment("available_at")
        sql = f"SELECT {column} FROM leasequeue_job{dialect.hint(_INDEX)} WHERE {range_} LIMIT 1"
        return tagged("probe", sql), params


def as_mark(dialect: Dialect, available: Any) -> Any:
    """Return an available_at, read through `select_moment`, as a lane's mark.

    None, the beginning, for a time that nothing but plain SQL can have put there.
    """
    moment = dialect.as_utc(available)
    return None if moment is None or moment.year < 1970 else dialect.time_param(moment)


def due_range(dialect: Dialect, lane: Lane, mark: Any) -> tuple[str, list[Any]]:
    """Return the condition and order of a lane's due jobs, in the claim index's own order."""
    from_mark, params = ("", []) if mark is None else ("AND available_at >= %s ", [mark])
    condition = (
        "queue_name = %s AND status = 'ready' AND priority = %s "
        f"AND available_at <= {dialect.now} {from_mark}ORDER BY available_at, id"
    )
    return condition, [lane.queue, lane.priority, *params]
