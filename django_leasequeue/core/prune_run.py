"""A run of prune: target by target, window by window, with what it has done so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic, sleep

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.archive import Archive
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.old_jobs import Target, walk
from django_leasequeue.core.pruning import Batch, count, take
from django_leasequeue.core.transaction import CommitUnknown, marks, run, tagged

__all__ = ["PruneRun", "Pruned"]

#: Claims beside prune have the server 24 times as long as a batch has it: with 4 % of the time it
#: cannot reach their 95th percentile. One batch that stood still is no reason to stand for longer.
_REST, _LEAST, _MOST = 24, 0.05, 2.0
#: Rows beside the jobs: table, and what makes one old.
_BESIDE = {
    "workers": ("leasequeue_worker", "seen_at <= %s"),
    "bulk_runs": ("leasequeue_bulkrun", "finished_at <= %s"),
}


@dataclass(slots=True)
class Pruned:
    """How many rows are gone; with `dry_run`, would be.

    `referenced` jobs stayed, for a foreign key of another table holds them. `workers` are
    presence rows of workers that were not seen for long, `bulk_runs` those that are over.
    """

    jobs: int = 0
    attempts: int = 0
    effects: int = 0
    referenced: int = 0
    workers: int = 0
    bulk_runs: int = 0


@dataclass(slots=True)
class PruneRun:
    """How a run goes on, and how far it has come."""

    connection: BaseDatabaseWrapper
    batch: int
    #: Seconds between two batches; None: as long as the last one asks for.
    pause: float | None
    dry_run: bool
    left: int | None = None
    archive: Archive | None = None
    progress: Callable[[int], object] | None = None
    done: Pruned = field(default_factory=Pruned)
    #: How many seconds the last batch took, 0 if there is nothing to rest from.
    _worked: float = 0.0

    def jobs(self, target: Target) -> None:
        """Take the jobs of one target, window by window, until the limit."""
        for window in walk(self.connection, target, self.batch):
            start = 0
            while start < len(window) and self.left != 0:
                piece = window[start:][: self.left]
                start += len(piece)
                self._piece(target, piece)
            if self.left == 0:
                return

    def _piece(self, target: Target, ids: Sequence[int]) -> None:
        """Take those jobs; when a foreign key holds one of them, all the others."""
        waiting: list[Sequence[int]] = [ids]
        while waiting:
            part = waiting.pop()
            try:
                taken = self._take(target, part)
            except IntegrityError:
                if len(part) == 1:
                    self.done.referenced += 1
                else:
                    waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
                continue
            if taken.rest:
                waiting.append(taken.rest)
            if taken.jobs:
                self._note(taken)

    def _take(self, target: Target, ids: Sequence[int]) -> Batch:
        if self.dry_run:
            return count(self.connection, target, ids)
        self._rest()
        began = monotonic()
        taken = take(self.connection, target, ids, self.archive)
        if taken.jobs:
            self._worked = monotonic() - began
        return taken

    def _note(self, taken: Batch) -> None:
        self.done.jobs += taken.jobs
        self.done.attempts += taken.attempts
        self.done.effects += taken.effects
        if self.left is not None:
            self.left -= taken.jobs
        if self.progress:
            self.progress(taken.jobs)

    def beside(self, name: str, before: datetime) -> None:
        """Take the rows of one kind that nobody needs any more."""
        table, old = _BESIDE[name]
        while True:
            began = monotonic()
            number = self._beside_batch(table, old, before)
            setattr(self.done, name, getattr(self.done, name) + number)
            if self.dry_run or number < self.batch:
                return
            self._worked = monotonic() - began
            self._rest()

    def _beside_batch(self, table: str, old: str, before: datetime) -> int:
        dialect = dialect_for(self.connection)
        moment = dialect.time_param(before)
        what, bound = (
            ("COUNT(*)", "") if self.dry_run else ("id", f" ORDER BY id LIMIT {self.batch}")
        )

        def work(cursor: CursorWrapper) -> int:
            cursor.execute(
                tagged("prune", f"SELECT {what} FROM {table} WHERE {old}{bound}"), [moment]
            )
            found = [row[0] for row in cursor.fetchall()]
            if self.dry_run or not found:
                return sum(found)
            sql = f"{dialect.delete_from(table, 'PRIMARY')} WHERE id IN ({marks(found)}) AND {old}"
            cursor.execute(tagged("prune", sql), [*found, moment])
            return int(cursor.rowcount)

        try:
            return run(self.connection, work)
        except CommitUnknown:
            return run(self.connection, work)  # what is gone by now is not counted

    def _rest(self) -> None:
        """Leave the server to the workers for a moment, if there was a batch since the last."""
        pause = self.pause
        if pause is None:
            pause = min(max(_LEAST, _REST * self._worked), _MOST)
        if pause and self._worked:
            sleep(pause)
        self._worked = 0.0
