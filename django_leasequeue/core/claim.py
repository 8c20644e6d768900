"""Claim: take due jobs of one lane under a fresh token, commit, then read their payloads."""

from __future__ import annotations

import secrets

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.lanes import Lane, Lanes
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.reading import look_up, read_jobs
from django_leasequeue.core.take import ClaimSettings, Taken, Wanted, give_up, take
from django_leasequeue.core.transaction import CommitUnknown, run

__all__ = ["ClaimSettings", "claim"]

_ROUNDS = 200  # of jobs that all came to nothing, before other lanes have their turn
#: Refusals in a row that are the rows' own fault; with one more it is the database's.
MAX_REFUSALS = 5


def claim(
    connection: BaseDatabaseWrapper,
    lanes: Lanes,
    limit: int,
    settings: ClaimSettings,
    *,
    ahead: int = 0,
) -> list[Claimed]:
    """Claim up to `limit` due jobs of the first lane that has any and return them in order.

    `ahead` more are claimed to wait in this worker, as far as the next in order has neither
    crashed before nor is on its last attempt. Afterwards each is `reserved` under a token that no
    other claim ever had, attempts and claims one higher, until its lease from the moment of the
    claim. Jobs met on the way whose attempts are used up are dead, those past `expires_at`
    cancelled. A claim whose COMMIT answer was lost is looked up, so that what was claimed is
    returned. A job that the database refuses to reserve is dead; raises its error when it
    refuses more than a few in a row.
    """
    wanted = Wanted(limit, ahead)
    for lane in lanes.ordered(connection) if wanted.total > 0 else ():
        for _round in range(_ROUNDS):
            if not lanes.has_due(connection, lane):
                break
            taken = _claim_lane(connection, lanes, lane, wanted, settings)
            if taken.ids:
                lanes.claimed(lane, taken.mark, full=len(taken.ids) == wanted.total)
                return read_jobs(
                    connection, taken.ids, taken.token, "reserved", settings.seconds_for
                )
            lanes.empty(lane)
            if taken.stopped:
                return []  # what is left here goes first: nothing of a later lane overtakes it
            if not taken.others:
                break
    return []


def _claim_lane(
    connection: BaseDatabaseWrapper,
    lanes: Lanes,
    lane: Lane,
    wanted: Wanted,
    settings: ClaimSettings,
) -> Taken:
    tries: list[Taken] = []

    def work(cursor: CursorWrapper) -> None:
        # A fresh token per try: an earlier try's COMMIT may have been applied.
        tries.append(Taken(secrets.token_bytes(16)))
        take(connection, cursor, lane, lanes.mark_of(lane), wanted, settings, tries[-1])

    try:
        run(connection, work)
    except CommitUnknown:
        tries[-1].ids = look_up(connection, tries[-1].ids, tries[-1].token)
    except (DataError, IntegrityError):
        # One row cannot be claimed (a counter at its end, put there by plain SQL): find it.
        if wanted.total > 1:
            return _claim_lane(connection, lanes, lane, wanted.one(), settings)
        lanes.refusals += 1
        if lanes.refusals > MAX_REFUSALS or not tries[-1].ids:
            raise
        return Taken(b"", others=give_up(connection, tries[-1].ids))
    return tries[-1]
