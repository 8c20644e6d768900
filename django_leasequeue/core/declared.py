"""Schedules declared in code: brought into the database when a worker starts.

An operator's pause stays. What a declaration says is written by whichever worker starts last, so
in a rolling deploy the new version's word stands; a schedule that no running code declares is left
in the table, and ticks no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.periodic import MISSED, database_now, next_tick, quoted
from django_leasequeue.core.transaction import CommitUnknown, ask, marks, run, tagged
from django_leasequeue.declaration import Declaration
from django_leasequeue.grid import Rule

__all__ = ["Synced", "sync_declared"]

_RULE = ("cron", "every", "timezone")
_COLUMNS = ("job_type", "payload_version", "queue_name", "priority", "key", "catch_up", *_RULE)


class Synced(NamedTuple):
    """The names of schedules by what became of them; all others were as declared already.

    `changed` is written now, `pending` has to be tried again, `kept` is an operator's.
    """

    changed: list[str]
    pending: list[str]
    kept: list[str]


def sync_declared(connection: BaseDatabaseWrapper, declared: Sequence[Declaration]) -> Synced:
    """Insert or update the schedules of these types; return what was not yet as declared.

    Waits for no lock: a row that somebody holds is `pending`, as is one whose COMMIT's answer was
    lost. Call it again for those alone, or two versions that start together would write each
    other's declarations for as long as both do. A new one and one whose rule changed tick next on
    their grid, never at once. One of the same name that an operator has made is the operator's,
    and `kept`. Raises what the database raises: it may be called again.
    """
    if not declared:
        return Synced([], [], [])
    names = sorted(kind.name for kind in declared)
    sql = (
        f"SELECT name, declared_in_code, {quoted(connection, _COLUMNS)} FROM leasequeue_schedule "
        f"WHERE name IN ({marks(names)})"
    )
    known = {
        name: (bool(ours), row) for name, ours, *row in ask(connection, tagged("tick", sql), names)
    }
    synced = Synced([], [], [])
    for kind in sorted(declared, key=lambda kind: kind.name):
        wanted = _wanted(kind)
        ours, row = known.get(kind.name, (True, None))
        if not ours:
            synced.kept.append(kind.name)
        elif row != list(wanted.values()):
            written = _write(connection, kind, wanted, new=row is None)
            (synced.changed if written else synced.pending).append(kind.name)
    return synced


def _wanted(kind: Declaration) -> dict[str, Any]:
    rule = kind.rule
    assert rule is not None  # noqa: S101  (the caller has chosen those that have one)
    return {
        "job_type": kind.name,
        "payload_version": kind.version,  # its payload is empty in every version
        "queue_name": kind.queue,
        "priority": kind.priority,
        "key": kind.key if isinstance(kind.key, str) else "",
        "catch_up": kind.catch_up,
        "cron": rule.cron,
        "every": rule.every,
        "timezone": rule.timezone,
    }


def _write(
    connection: BaseDatabaseWrapper, kind: Declaration, wanted: dict[str, Any], *, new: bool
) -> bool:
    """Write a declaration; tell whether that is known to be done."""
    try:
        return run(
            connection,
            lambda cursor: (_insert if new else _update)(connection, cursor, kind, wanted),
        )
    except CommitUnknown:
        return False
    except IntegrityError as error:
        if not dialect_for(connection).is_duplicate(error):
            raise
        return False  # another worker that starts has just done it


def _insert(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    kind: Declaration,
    wanted: dict[str, Any],
) -> bool:
    dialect, rule = dialect_for(connection), kind.rule
    assert rule is not None  # noqa: S101  (as above)
    following = next_tick(rule, database_now(connection), None)
    columns = ("name", "declared_in_code", "next_tick", *wanted)
    cursor.execute(
        tagged(
            "tick",
            f"INSERT INTO leasequeue_schedule ({quoted(connection, columns)}) "
            f"VALUES ({marks(columns)})",
        ),
        [kind.name, True, dialect.time_param(following), *wanted.values()],
    )
    return True


def _update(
    connection: BaseDatabaseWrapper,
    cursor: CursorWrapper,
    kind: Declaration,
    wanted: dict[str, Any],
) -> bool:
    """Write what the code says; with another rule, the next tick is planned afresh.

    Except one that is due, and on the new grid too: a deploy at that moment must not drop it.
    """
    dialect, rule = dialect_for(connection), kind.rule
    assert rule is not None  # noqa: S101  (as above)
    cursor.execute(
        tagged(
            "tick",
            f"SELECT {', '.join(_RULE)}, {dialect.select_time('last_tick')}, "
            f"{dialect.select_time('next_tick')} "
            f"FROM leasequeue_schedule WHERE name = %s{dialect.skip_locked}",
        ),
        [kind.name],
    )
    found = cursor.fetchone()
    if found is None:
        return False  # deleted meanwhile, or locked
    changes, params = (
        [f"{quoted(connection, [name])} = %s" for name in wanted],
        list(wanted.values()),
    )
    *old, last, due = found
    now = database_now(connection)
    if tuple(old) != (rule.cron, rule.every, rule.timezone) and not (
        _stands(rule, dialect.as_utc(due), now)
    ):
        changes.append("next_tick = %s")
        params.append(dialect.time_param(next_tick(rule, now, dialect.as_utc(last))))
    cursor.execute(
        tagged(
            "tick",
            f"UPDATE leasequeue_schedule SET {', '.join(changes)}, updated_at = {dialect.stamp} "
            "WHERE name = %s AND declared_in_code = %s",
        ),
        [*params, kind.name, True],
    )
    return True


def _stands(rule: Rule, due: datetime | None, now: datetime) -> bool:
    """Tell whether a tick that was planned by another rule is due, not missed, and one of this."""
    if due is None or not 0 <= (now - due).total_seconds() <= MISSED:
        return False
    return rule.from_(due) == due
