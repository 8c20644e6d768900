"""The rows of schedules as the core reads them, and the job that a tick makes of one."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.codec import digest_key
from django_leasequeue.conf import get_conf
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.request import Request
from django_leasequeue.core.sealing import sign_request
from django_leasequeue.core.transaction import ask, tagged
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.grid import Rule
from django_leasequeue.registry import registry

__all__ = ["MISSED", "Row", "database_now", "job_of", "next_tick", "quoted", "row_columns"]


#: A tick is missed when it is later than this, in seconds: a restart or a change-over misses none.
MISSED = 120.0


class Row(NamedTuple):
    """A schedule's row. `payload` is JSON text."""

    id: int
    name: str
    job_type: str
    payload: str
    payload_version: int
    queue_name: str
    priority: int
    key: str
    cron: str
    every: float | None
    timezone: str
    catch_up: str
    last_tick: datetime | None
    next_tick: datetime | None

    def __repr__(self) -> str:
        return f"<Row {self.name!r}>"  # no payload, no key

    @property
    def rule(self) -> Rule:
        """When it ticks; raises ScheduleError for a row that somebody's SQL has spoiled."""
        return Rule.of(cron=self.cron, every=self.every, timezone=self.timezone)

    @classmethod
    def read(cls, dialect: Dialect, values: tuple[object, ...]) -> Row:
        """Return what `row_columns` has read."""
        *rest, last, following = values
        return cls._make([*rest, dialect.as_utc(last), dialect.as_utc(following)])


def row_columns(connection: BaseDatabaseWrapper) -> str:
    """Return the columns of a Row, for SELECT."""
    dialect = dialect_for(connection)
    *plain, last, following = Row._fields
    return ", ".join(
        [quoted(connection, plain), dialect.select_time(last), dialect.select_time(following)]
    )


def quoted(connection: BaseDatabaseWrapper, columns: Iterable[str]) -> str:
    """Return names of columns for a statement: `key` is a reserved word of some servers."""
    return ", ".join(map(connection.ops.quote_name, columns))


def database_now(connection: BaseDatabaseWrapper) -> datetime:
    """Return the database's time, aware UTC."""
    dialect = dialect_for(connection)
    ((now,),) = ask(connection, tagged("tick", f"SELECT {dialect.select_time(dialect.now)}"))
    moment = dialect.as_utc(now)
    assert moment is not None  # noqa: S101  (a clock has no NULL)
    return moment


def next_tick(rule: Rule, now: datetime, last: datetime | None) -> datetime:
    """Return the first tick to come: after now, and after the last one, whatever the clock did."""
    return rule.after(now if last is None else max(now, last))


def job_of(row: Row, tick: datetime | None, token: str | None = None) -> Request:
    """Return the job of a tick, or one made by hand for None. Runs no code of the project.

    Its identity is the schedule's name and the tick, or the token of what is made by hand. The
    payload is taken as it is, limits are as far as this process knows the job type. Raises
    ScheduleError for a payload that is no object.
    """
    declared, conf = registry.get(row.job_type), get_conf()
    request = Request(
        job_type=row.job_type,
        queue=row.queue_name,
        payload=row.payload,
        idempotency_key=_identity(row.name, tick, token),
        live_key=digest_key(f"schedule {row.key}") if row.key else None,
        keyed=bool(row.key or token),
        on_conflict="return",
        priority=row.priority,
        max_attempts=(declared and declared.max_attempts) or conf.MAX_ATTEMPTS,
        max_crashes=(declared and declared.max_crashes) or conf.MAX_CRASHES,
        available=None,
        expires=None,
        timeout=None,
        payload_version=row.payload_version,
        schedule=row.name,
        tick_at=tick,
    )
    if not row.payload.lstrip().startswith("{"):
        raise ScheduleError("its payload is no JSON object")
    return sign_request(request)


def _identity(name: str, tick: datetime | None, token: str | None) -> str:
    if tick is None and not token:
        return secrets.token_hex(32)
    which = f"by hand\0{token}" if tick is None else f"{tick:%Y-%m-%dT%H:%M:%S.%f}"
    # No key's digest: NUL is refused in keys.
    return hashlib.sha256(f"schedule\0{name}\0{which}".encode()).hexdigest()
