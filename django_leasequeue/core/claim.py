"""Claim: take due jobs of a lane under a fresh token, commit, read their payloads; lane by lane."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from django.db import DataError, IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import trouble
from django_leasequeue.core.lanes import Lane, Lanes
from django_leasequeue.core.lease import Claimed, Lease
from django_leasequeue.core.reading import look_up, read_jobs
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.core.take import ClaimSettings, Taken, Wanted, give_up, take
from django_leasequeue.core.transaction import CommitUnknown, run
from django_leasequeue.outcomes import End, Outcome

__all__ = ["ClaimSettings", "claim", "claims"]

#: Once there are jobs to run, they wait no longer for more: so many lanes without any, in a row.
_EMPTY_LANES = 8
_MORE_SECONDS = 0.05
_ROUNDS = 200  # of jobs that all came to nothing, before other lanes have their turn
_UNREAD = Outcome(End.RELEASED, reason="Released: it could not be read", started=False)
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
    """Claim up to `limit` due jobs, as `claims` does, and return them all."""
    found = claims(connection, lanes, limit, settings, ahead=ahead)
    return [job for jobs in found for job in jobs]


def claims(
    connection: BaseDatabaseWrapper,
    lanes: Lanes,
    limit: int,
    settings: ClaimSettings,
    *,
    ahead: int = 0,
) -> Iterator[list[Claimed]]:
    """Claim up to `limit` due jobs, lane by lane, and yield those of each lane in order.

    The caller holds their leases before it asks for the next: the rest may take longer than a
    lease does. `ahead` more are claimed to wait in this worker, as far as the next in order has
    neither crashed before nor is on its last attempt. Once there are some, only a few lanes without
    any and little time are spent on more. Afterwards each is `reserved` under a token that no other
    claim ever had, attempts and claims one higher, until its lease from the moment of the claim.
    Jobs met on the way whose attempts are used up are dead, those past `expires_at`
    cancelled. A claim whose COMMIT answer was lost is looked up, so that what was claimed is
    yielded. A job that the database refuses to reserve is dead; raises its error when it
    refuses more than a few in a row. An error that does not pass, met once there are jobs, is
    raised by the next call; that gives back what this one has reserved and could not read, too.
    """
    lanes.raise_owed()
    _release_unread(connection, lanes)
    claimed = False
    wanted = Wanted(limit, ahead)
    empty, until = 0, float("inf")
    for lane in lanes.ordered(connection) if wanted.total > 0 else ():
        try:
            found, over = _claim_from(connection, lanes, lane, wanted, settings, until)
        except Exception as error:
            if not claimed:
                raise
            if trouble(connection, error) is None:  # passing trouble the next call meets itself
                lanes.owed = error
            break
        if found and not claimed:
            until = time.monotonic() + _MORE_SECONDS
            claimed = True
        if found:
            yield found
        wanted = wanted.without(len(found))
        empty = 0 if found or not claimed else empty + 1
        if over or not wanted.total or empty == _EMPTY_LANES or time.monotonic() > until:
            break


def _release_unread(connection: BaseDatabaseWrapper, lanes: Lanes) -> None:
    """Give back what was reserved and could not be read: nobody runs it, its lease would lapse."""
    if not lanes.unread:
        return
    results = settle(connection, [Ending(lease, _UNREAD) for lease in lanes.unread])
    lanes.unread = [
        settled.ending.lease for settled in results if settled.verdict is Verdict.PENDING
    ]
    lanes.forget()  # they are due before their lanes' marks


def _claim_from(
    connection: BaseDatabaseWrapper,
    lanes: Lanes,
    lane: Lane,
    wanted: Wanted,
    settings: ClaimSettings,
    until: float,
) -> tuple[list[Claimed], bool]:
    """Claim from one lane; return the jobs, and whether it may have more that go first.

    Then nothing of a later lane may overtake them. After `until` jobs that came to nothing are no
    reason to ask once more.
    """
    if lanes.is_narrow(lane):
        wanted = Wanted(wanted.limit, 0)
        if not wanted.total:
            return [], lanes.has_due(connection, lane)
    for _round in range(_ROUNDS):
        if not lanes.has_due(connection, lane):
            break
        taken = _claim_lane(connection, lanes, lane, wanted, settings)
        lanes.note_ahead(lane, in_vain=taken.stopped and len(taken.ids) <= wanted.limit)
        if taken.ids:
            lanes.claimed(lane, taken.mark, full=len(taken.ids) == wanted.total)
            return _read(connection, lanes, taken, settings), taken.more
        lanes.empty(lane)
        if taken.stopped or not taken.others:
            return [], taken.more
        if time.monotonic() > until:
            return [], True
    return [], False


def _read(
    connection: BaseDatabaseWrapper, lanes: Lanes, taken: Taken, settings: ClaimSettings
) -> list[Claimed]:
    try:
        return read_jobs(connection, taken.ids, taken.token, "reserved", settings.seconds_for)
    except Exception:  # whatever it is: nobody has these jobs, and it goes on
        lanes.unread += [Lease(job_id, taken.token) for job_id in taken.ids]
        raise


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
        mine, unknown = look_up(connection, tries[-1].ids, tries[-1].token)
        lanes.unread += [Lease(job_id, tries[-1].token) for job_id in unknown]
        tries[-1].ids, tries[-1].more = mine, True
    except (DataError, IntegrityError):
        # One row cannot be claimed (a counter at its end, put there by plain SQL): find it.
        if wanted.total > 1:
            return _claim_lane(connection, lanes, lane, wanted.one(), settings)
        lanes.refusals += 1
        if lanes.refusals > MAX_REFUSALS or not tries[-1].ids:
            raise
        return Taken(b"", others=give_up(connection, tries[-1].ids), more=True)
    return tries[-1]
