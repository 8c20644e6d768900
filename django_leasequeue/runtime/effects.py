"""Effects of a handler that are committed before its job ends, once per job and name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import clean_text
from django_leasequeue.core.effects import claim_effect, effect_stands
from django_leasequeue.core.lease import Claimed
from django_leasequeue.exceptions import JobError
from django_leasequeue.runtime.fenced import fenced, hold_row
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts

__all__ = ["effect_once"]

_NAME_LENGTH = 255


@contextmanager
def effect_once(
    job: Claimed, hold: Hold, alias: str, interrupts: Interrupts, name: object
) -> Iterator[bool]:
    """Run the block in a fenced transaction that notes the effect `name`; yields True at first.

    Raises JobError for a name that cannot be stored.
    """
    if not isinstance(name, str) or not name or clean_text(name, _NAME_LENGTH) != name:
        raise JobError(
            f"the name of an effect is a text of 1 to {_NAME_LENGTH} characters that every "
            "database can store"
        )
    deed = _Effect(job, hold, name)
    with fenced(deed, alias, interrupts):
        yield deed.first


@dataclass(slots=True)
class _Effect:
    """The deed: an effect is noted, and the lease goes on."""

    job: Claimed
    hold: Hold
    name: str
    first: bool = False

    def begin(self, connection: BaseDatabaseWrapper) -> None:
        job = self.job
        hold_row(connection, job, self.hold)
        with connection.cursor() as cursor:
            self.first = claim_effect(connection, cursor, job.job_id, self.name, job.number)

    def prepare(self) -> None:
        """Nothing can fail."""

    def wait(self, connection: BaseDatabaseWrapper) -> None:
        """Nothing is waited for."""

    def seal(self, connection: BaseDatabaseWrapper) -> None:
        # Nobody could prolong the lease while this transaction had the row.
        hold_row(connection, self.job, self.hold)

    def stands(self, connection: BaseDatabaseWrapper) -> bool:
        # A repeated effect leaves no trace: its COMMIT stays unknown, and the error is raised.
        return self.first and effect_stands(connection, self.job.job_id, self.name, self.job.number)

    def committed(self) -> None:
        """The row says it."""
