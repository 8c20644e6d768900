"""Dead letters in groups: those of one type that failed alike, as far as they were looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.clock import read_now
from django_leasequeue.core.dead_letters import snoozed
from django_leasequeue.core.dead_search import MOST_DEAD, DeadLetter, Sought, search
from django_leasequeue.models import DeadGroup, Job, JobAttempt

__all__ = ["Group", "Look", "Wanted", "asleep", "describe"]

#: Columns of a sparkline: hours.
HOURS = 24


class Wanted(NamedTuple):
    """Which dead letters: None matches all; the fingerprint "" is that of those without one.

    Groups that are snoozed are meant where one is named by its fingerprint, or with `snoozed`.
    """

    queue: str | None = None
    job_type: str | None = None
    fingerprint: str | None = None
    snoozed: bool = False

    @property
    def is_one_group(self) -> bool:
        """Tell whether no more than one group can be meant."""
        return self.job_type is not None and self.fingerprint is not None

    def job_filter(
        self,
        *,
        died_after: datetime | None = None,
        died_before: datetime | None = None,
        without: Iterable[str] = (),
    ) -> JobFilter:
        """Return the same for a bulk run; raises LeaseQueueError for what no job can have."""
        return JobFilter(
            self.queue,
            self.job_type,
            fingerprint=self.fingerprint,
            died_after=died_after,
            died_before=died_before,
            without=without,
        )


@dataclass
class Group:
    """The dead letters of one type and fingerprint that were looked at, the newest first."""

    job_type: str
    fingerprint: str
    letters: list[DeadLetter] = field(default_factory=list)
    #: Deaths by hour, up to now.
    hours: list[int] = field(default_factory=lambda: [0] * HOURS)
    error: str = ""
    frame: str = ""
    note: str = ""
    snoozed_until: datetime | None = None
    #: The id of the row that holds these two.
    noted_in: int | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.letters)

    @property
    def first_seen(self) -> datetime | None:
        """When the first of them died."""
        return self.letters[-1].died_at if self.letters else None

    @property
    def last_seen(self) -> datetime | None:
        """When the last of them died."""
        return self.letters[0].died_at if self.letters else None


@dataclass(frozen=True)
class Look:
    """What one look at the dead letters has shown; not `whole`: there are older ones."""

    now: datetime
    letters: Sequence[DeadLetter]
    whole: bool
    #: How many groups are not shown, because they are snoozed; the fingerprints of all that are.
    sleepers: int = 0
    without: Sequence[str] = ()
    #: Whatever died before this was not shown; None when all were.
    oldest: datetime | None = None

    @classmethod
    def at(cls, connection: BaseDatabaseWrapper, wanted: Wanted) -> Look:
        """Return the dead letters that match, and died before now by the database's clock."""
        now = read_now(connection)
        without = asleep(connection, wanted, now)
        sought = Sought(wanted.queue, wanted.job_type, wanted.fingerprint, without)
        letters, whole, left_out = search(connection, sought)
        times = [one.died_at for one in letters if one.died_at is not None]
        oldest = None if whole else min(times, default=None)
        return cls(now, letters, whole, left_out, without, oldest)

    @property
    def full(self) -> bool:
        """Tell whether there are more than can be shown, and not only more than were looked at."""
        return not self.whole and len(self.letters) >= MOST_DEAD

    @property
    def groups(self) -> list[Group]:
        """The groups, the largest first."""
        found: dict[tuple[str, str], Group] = {}
        for one in self.letters:
            key = (one.job_type, one.fingerprint)
            group = found.setdefault(key, Group(*key))
            group.letters.append(one)
            if one.died_at is not None:
                ago = int((self.now - one.died_at) / timedelta(hours=1))
                if 0 <= ago < HOURS:
                    group.hours[HOURS - 1 - ago] += 1
        return sorted(found.values(), key=lambda group: -group.count)


def asleep(connection: BaseDatabaseWrapper, wanted: Wanted, now: datetime) -> list[str]:
    """Return the fingerprints that are not meant, because their groups are snoozed at `now`."""
    if wanted.snoozed or wanted.fingerprint is not None:
        return []
    return snoozed(connection, now)


def describe(groups: Iterable[Group], using: str) -> None:
    """Add what is noted about the groups, and the error of the last death of each."""
    shown = list(groups)
    notes = DeadGroup.objects.using(using).filter(
        fingerprint__in={group.fingerprint for group in shown if group.fingerprint}
    )
    noted: Mapping[str, DeadGroup] = {row.fingerprint: row for row in notes}
    newest_ids = [group.letters[0].id for group in shown]
    errors = dict(
        Job.objects.using(using).filter(pk__in=newest_ids).values_list("pk", "last_error")
    )
    frames = _last_frames(newest_ids, using)
    for group in shown:
        group.error = errors.get(group.letters[0].id, "")
        group.frame = frames.get(group.letters[0].id, "")
        if row := noted.get(group.fingerprint):
            group.note, group.snoozed_until, group.noted_in = row.note, row.snoozed_until, row.pk


def _last_frames(ids: Sequence[int], using: str) -> dict[int, str]:
    """Return where the last attempt of each job was when it failed."""
    attempts = JobAttempt.objects.using(using).filter(job_id__in=ids)
    last = attempts.values_list("job_id").annotate(Max("number"))
    numbers = dict(last.values_list("job_id", "number__max"))
    found: dict[int, str] = {}
    rows = attempts.filter(number__in=set(numbers.values()))
    for job_id, number, frames in rows.values_list("job_id", "number", "frames"):
        if numbers.get(job_id) == number and isinstance(frames, list) and frames:
            found[job_id] = str(frames[-1])
    return found
