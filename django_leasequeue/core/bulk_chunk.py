"""One chunk of a bulk run: the jobs, the run's place and its counts change in one transaction."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.bulk_plan import Plan, Reason, State
from django_leasequeue.core.bulk_search import Found, Place, find
from django_leasequeue.core.changes import cancel_rows, requeue_rows
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.operating import Row, lock_jobs
from django_leasequeue.core.payloads import Columns
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.statuses import Status

__all__ = ["Chunk", "take_chunk"]


class _Standing(NamedTuple):
    """What of a run's row changes, as it is while the row is locked."""

    state: State
    place: Place
    changed: int
    left_out: Counter[str]
    canary: list[int]
    #: How many jobs it may still change; None: no limit.
    room: int | None
    #: The database's time, and when the rate allows the next job.
    now: datetime
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one chunk came to, and the run's state after it."""

    state: State
    place: Place
    changed: Sequence[int] = ()
    left_out: Mapping[int, Reason] = field(default_factory=dict)
    #: The jobs that went first, so far.
    canary: Sequence[int] = ()
    #: Nothing was done: the next job is locked by somebody.
    waits: bool = False
    #: In how many seconds the run's rate allows the next job.
    pause: float = 0.0
    #: That moment, as it lies in the row.
    next_at: datetime | None = None


def take_chunk(
    connection: BaseDatabaseWrapper, plan: Plan, limit: int, window: int, *, patient: bool
) -> Chunk:
    """Deal with the next jobs of a run, at most `limit`, unless it was ended or must pause.

    The rate is the run's, whoever drives it: the row says when it allows the next job. While
    `patient`, a chunk ends before the first job that somebody has locked; else such jobs are
    left out. Two processes may drive one run: the run's row is locked, a job is dealt with once.
    """
    result: list[Chunk] = []

    def work(cursor: CursorWrapper) -> Chunk:
        result[:] = [_work(connection, cursor, plan, limit, window, patient=patient)]
        return result[0]

    try:
        return run(connection, work)
    except CommitUnknown:
        if result[0].place == _place(connection, plan.id):
            return result[0]
        return take_chunk(connection, plan, limit, window, patient=patient)


def _work(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    plan: Plan,
    limit: int,
    window: int,
    *,
    patient: bool,
) -> Chunk:
    standing = _lock_run(connection, cursor, plan)
    if standing.room is not None:
        limit = min(limit, standing.room)
    if standing.state is State.CANARY:
        limit = min(limit, plan.options.canary - len(standing.canary))
    limit = min(limit, plan.options.chunk)
    if standing.state not in (State.CANARY, State.RUNNING) or limit <= 0:
        return _nothing(standing)
    if standing.next_at is not None and standing.next_at > standing.now:
        return replace(_nothing(standing), pause=_seconds(standing.next_at, standing.now))
    for statement in dialect_for(connection).by_index:
        cursor.execute(statement)
    found = find(connection, cursor, plan.wanted, plan.bounds, standing.place, limit, window)
    met = _meet(connection, cursor, found, plan.sources, patient=patient)
    if met.place == standing.place and met.more:
        return replace(_nothing(standing), waits=True)
    chunk = _change(connection, cursor, plan, standing, met)
    _write(connection, cursor, plan.id, standing.left_out, chunk)
    return chunk


def _nothing(standing: _Standing) -> Chunk:
    return Chunk(standing.state, standing.place, canary=standing.canary)


def _change(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    plan: Plan,
    standing: _Standing,
    met: _Met,
) -> Chunk:
    first = standing.state is State.CANARY
    spread = 0.0 if first else plan.options.spread
    # By this a job's page tells which run it was, who began it and why.
    columns = Columns(", bulk_run = %s", (plan.id,))
    changed = _CHANGES[plan.operation](connection, cursor, met.rows, spread, columns)
    held = {row.id for row in met.rows} - set(changed)
    more = met.more and len(changed) != standing.room
    next_at = _next_at(standing, plan.options.rate, len(changed))
    return Chunk(
        standing.state if more else State.FINISHED,
        met.place,
        changed,
        {**met.left_out, **dict.fromkeys(held, Reason.KEY_HELD)},
        canary=[*standing.canary, *changed] if first else standing.canary,
        pause=_seconds(next_at, standing.now) if next_at and more else 0.0,
        next_at=next_at,
    )


def _next_at(standing: _Standing, rate: float | None, changed: int) -> datetime | None:
    """Return when so many changed jobs allow the next one; a pause saves up nothing."""
    if rate is None or not changed:
        return standing.next_at
    return standing.now + timedelta(seconds=changed / rate)


def _seconds(later: datetime, now: datetime) -> float:
    return max(0.0, (later - now).total_seconds())


class _Met(NamedTuple):
    """What was found, locked, and what was not; ends before a job that is waited for."""

    rows: Sequence[Row]
    left_out: dict[int, Reason]
    place: Place
    more: bool


def _meet(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    found: Found,
    sources: Sequence[Status],
    *,
    patient: bool,
) -> _Met:
    rows = lock_jobs(connection, cursor, found.ids, sources) if found.ids else []
    left = _why_not(connection, cursor, found.ids, rows, sources)
    locked = [job_id for job_id, reason in left.items() if reason is Reason.LOCKED]
    if not (locked and patient):
        return _Met(rows, left, found.place, found.more)
    end = min(locked)
    before = [job_id for job_id in found.ids if job_id < end]
    place = found.place._replace(id=before[-1]) if before else found.before
    return _Met(
        [row for row in rows if row.id < end],
        {job_id: reason for job_id, reason in left.items() if job_id < end},
        place,
        more=True,
    )


def _requeue(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    rows: Sequence[Row],
    spread: float,
    columns: Columns,
) -> list[int]:
    return requeue_rows(connection, cursor, rows, spread=spread, columns=columns)


def _cancel(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    rows: Sequence[Row],
    spread: float,
    columns: Columns,
) -> list[int]:
    return cancel_rows(connection, cursor, rows, columns=columns)


_CHANGES: dict[str, Callable[..., list[int]]] = {"requeue": _requeue, "cancel": _cancel}


def _lock_run(connection: BaseDatabaseWrapper, cursor: CursorWrapper, plan: Plan) -> _Standing:
    dialect = dialect_for(connection)
    cursor.execute(
        tagged(
            "bulk",
            "SELECT state, at_status, at_type, last_id, left_out, canary, changed, "
            f"{dialect.select_time(f'({dialect.now})')}, {dialect.select_time('next_at')} "
            f"FROM leasequeue_bulkrun WHERE id = %s{dialect.wait_locked}",
        ),
        [plan.id],
    )
    state, status, job_type, last_id, left_out, canary, changed, *moments = cursor.fetchone()
    now, next_at = map(dialect.as_utc, moments)
    assert now is not None  # noqa: S101  (no server's clock is NULL)
    most = plan.options.most
    return _Standing(
        State(state),
        Place(status, job_type, last_id),
        changed,
        Counter(json.loads(left_out)),
        json.loads(canary),
        None if most is None else max(0, most - changed),
        now,
        next_at,
    )


def _place(connection: BaseDatabaseWrapper, run_id: int) -> Place:
    sql = "SELECT at_status, at_type, last_id FROM leasequeue_bulkrun WHERE id = %s"
    return Place(*ask(connection, tagged("bulk", sql), [run_id])[0])


def _why_not(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    ids: Sequence[int],
    rows: Sequence[Row],
    sources: Sequence[Status],
) -> dict[int, Reason]:
    """Return why jobs that were found could not be locked."""
    missing = sorted(set(ids) - {row.id for row in rows})
    if not missing:
        return {}
    hint = dialect_for(connection).hint("PRIMARY")
    sql = f"SELECT id, status FROM leasequeue_job{hint} WHERE id IN ({marks(missing)})"
    cursor.execute(tagged("bulk", sql), missing)
    now: dict[int, str] = dict(cursor.fetchall())
    reasons = dict.fromkeys(missing, Reason.GONE)
    for job_id, status in now.items():
        reasons[job_id] = Reason.LOCKED if status in sources else Reason.OTHER_STATUS
    return reasons


def _write(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    run_id: int,
    left_out: Counter[str],
    chunk: Chunk,
) -> None:
    dialect = dialect_for(connection)
    left_out = left_out + Counter(reason.value for reason in chunk.left_out.values())
    finished = dialect.stamp if chunk.state is State.FINISHED else "NULL"
    params: list[Any] = [chunk.state.value, *chunk.place, len(chunk.changed)]
    params += [json.dumps(left_out), json.dumps(list(chunk.canary))]
    params += [chunk.next_at and dialect.time_param(chunk.next_at), run_id]
    cursor.execute(
        tagged(
            "bulk",
            "UPDATE leasequeue_bulkrun SET state = %s, at_status = %s, at_type = %s, "
            f"last_id = %s, changed = changed + %s, left_out = {dialect.json_param}, "
            f"canary = {dialect.json_param}, next_at = %s, updated_at = {dialect.stamp}, "
            f"finished_at = {finished} WHERE id = %s",
        ),
        params,
    )
