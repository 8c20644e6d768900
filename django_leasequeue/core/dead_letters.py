"""Dead letters as an operator looks at them: the newest few thousand, through one index, and notes.

Nothing groups or counts the whole table: groups are made of what was read here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import ask, tagged
from django_leasequeue.models import DeadGroup

__all__ = ["MOST_DEAD", "DeadLetter", "annotate", "newest", "snoozed"]

MOST_DEAD = 10_000
_RECOVER = "leasequeue_job_recover"


class DeadLetter(NamedTuple):
    """What groups a dead letter; `died_at` is None for one that plain SQL has made.

    `pending`: its burial is still to come.
    """

    id: int
    job_type: str
    queue: str
    fingerprint: str
    died_at: datetime | None
    pending: bool = False


def newest(connection: BaseDatabaseWrapper, most: int = MOST_DEAD) -> tuple[list[DeadLetter], bool]:
    """Return the `most` dead letters that died last, newest first, and whether these are all.

    Those whose burial is still to come are among them, however long ago they died.
    """
    dialect = dialect_for(connection)
    died = dialect.select_moment("finished_at")
    sql = (
        "SELECT id, job_type, queue_name, fingerprint, CASE WHEN finished_at IS NULL THEN NULL "
        f"ELSE {died} END, lease_until IS NOT NULL FROM leasequeue_job{dialect.hint(_RECOVER)} "
        # The whole order of the index, backwards: with less of it, or with a condition on
        # lease_until, one server or another sorts all there are.
        "WHERE status = 'dead' ORDER BY status DESC, lease_until DESC, finished_at DESC, id DESC "
        f"LIMIT {most + 1:d}"
    )
    rows = ask(connection, tagged("dead", sql))
    found = [
        DeadLetter(row[0], row[1], row[2], row[3], dialect.as_utc(row[4]), bool(row[5]))
        for row in rows[:most]
    ]
    return sorted(found, key=_when, reverse=True), len(rows) <= most


def snoozed(connection: BaseDatabaseWrapper, now: datetime) -> list[str]:
    """Return the fingerprints of the groups that are snoozed at `now`."""
    groups = DeadGroup.objects.using(connection.alias).filter(snoozed_until__gt=now)
    return list(groups.order_by("fingerprint").values_list("fingerprint", flat=True))


def annotate(connection: BaseDatabaseWrapper, fingerprint: str, **values: Any) -> DeadGroup:
    """Write a group's `note` or `snoozed_until` and return its row; other columns stay."""
    groups = DeadGroup.objects.using(connection.alias)
    groups.get_or_create(fingerprint=fingerprint)
    groups.filter(fingerprint=fingerprint).update(**values, updated_at=UtcNow())
    return groups.get(fingerprint=fingerprint)


def _when(letter: DeadLetter) -> tuple[float, int]:
    return (letter.died_at.timestamp() if letter.died_at else 0.0, letter.id)
