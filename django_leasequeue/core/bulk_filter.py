"""Which jobs a bulk run is for, as a value and as JSON: checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django_leasequeue.codec import clean_text
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.statuses import Status

__all__ = ["MOST_IDS", "MOST_WITHOUT", "JobFilter"]

#: Ids that one run can name; they lie in its row.
MOST_IDS = 50_000
#: Fingerprints that one run can leave out: they are in each of its statements.
MOST_WITHOUT = 500
_LARGEST_ID = 2**63 - 1
_LENGTHS = {"queue": 64, "job_type": 255, "fingerprint": 16}


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The jobs that match all that is given; nothing given means every dead letter.

    `queue` and `job_type` are names, `fingerprint` is that of an error, "" of none.
    `statuses` are words such as "dead" and "cancelled". `died_after` (inclusive) and `died_before`
    are aware datetimes and go by when a job became final; one that plain SQL made final, without
    a time, was so before any. `without` are up to 500 fingerprints that do not match. `ids` stand
    for themselves: nothing but `statuses` and `died_before` can be given with them, and there are
    at most 50 000. Raises LeaseQueueError for what cannot be a filter.
    """

    queue: str | None = None
    job_type: str | None = None
    statuses: Iterable[str] = (Status.DEAD,)
    fingerprint: str | None = None
    died_after: datetime | None = None
    died_before: datetime | None = None
    ids: Iterable[int] | None = None
    without: Iterable[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "statuses", _statuses(self.statuses))
        for name, length in _LENGTHS.items():
            _check_text(name, getattr(self, name), length)
        object.__setattr__(self, "without", tuple(sorted(set(self.without))))
        for fingerprint in self.without:
            _check_text("without", fingerprint, _LENGTHS["fingerprint"])
        if len(tuple(self.without)) > MOST_WITHOUT:
            raise LeaseQueueError(f"{MOST_WITHOUT} is the most that can be left out")
        for name in ("died_after", "died_before"):
            moment = getattr(self, name)
            if moment is not None and moment.tzinfo is None:
                raise LeaseQueueError(f"{name} needs a time zone: 2042-01-31T12:00:00Z for one")
        if self.ids is not None:
            object.__setattr__(self, "ids", self._checked_ids(self.ids))

    def _checked_ids(self, given: Iterable[int]) -> tuple[int, ...]:
        others = (self.queue, self.job_type, self.fingerprint, self.died_after)
        if any(other is not None for other in others) or self.without:
            raise LeaseQueueError("ids stand for themselves: leave the other conditions out")
        ids = tuple(sorted(set(given)))
        if len(ids) > MOST_IDS:
            raise LeaseQueueError(f"{len(ids)} ids; {MOST_IDS} is the most: use several runs")
        if ids and not 0 < ids[0] <= ids[-1] <= _LARGEST_ID:
            raise LeaseQueueError("an id is a number from 1 on")
        return ids

    def as_json(self) -> dict[str, Any]:
        """Return it as it lies in a run's row. Raises nothing."""
        found: dict[str, Any] = {"statuses": list(self.statuses)}
        for name in (*_LENGTHS, "ids"):
            if (value := getattr(self, name)) is not None:
                found[name] = list(value) if name == "ids" else value
        if self.without:
            found["without"] = list(self.without)
        for name in ("died_after", "died_before"):
            if (moment := getattr(self, name)) is not None:
                found[name] = moment.astimezone(UTC).isoformat()
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return what `as_json` made of a filter, from its `data`. Raises as the class does."""
        moments = {
            name: datetime.fromisoformat(data[name])
            for name in ("died_after", "died_before")
            if name in data
        }
        return cls(**{**data, **moments})


def _statuses(given: Iterable[str]) -> tuple[Status, ...]:
    words = [given] if isinstance(given, str) else list(given)
    known = {status.value: status for status in Status}
    if not words or not set(words) <= set(known):
        raise LeaseQueueError(f"statuses are some of {', '.join(known)}, not {words!r}")
    return tuple(status for status in Status if status in words)


def _check_text(name: str, value: object, length: int) -> None:
    if value is None:
        return
    # "" is the fingerprint of what left no error, and plain SQL may give it to the others.
    if not isinstance(value, str) or len(value) > length:
        raise LeaseQueueError(f"{name} is a text of at most {length} characters")
    if clean_text(value, length) != value:
        raise LeaseQueueError(f"{name} holds what no database can store")
