"""Schedules as an operator has them: add, edit, enable, disable, run now, look ahead.

None of these makes a schedule tick at once, or for time that has passed: the next tick is the first
on its grid after the database's now.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.conf import get_conf
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.insert import insert_one
from django_leasequeue.core.periodic import Row, database_now, job_of, next_tick, row_columns
from django_leasequeue.core.schedule_columns import checked_schedule, checked_text
from django_leasequeue.core.transaction import ask, repeat, tagged
from django_leasequeue.exceptions import ScheduleError
from django_leasequeue.grid import Rule
from django_leasequeue.models import Job, Schedule
from django_leasequeue.registry import registry

__all__ = [
    "add_schedule",
    "disable_schedule",
    "edit_schedule",
    "enable_schedule",
    "list_schedules",
    "next_ticks",
    "run_schedule",
]

_EDITABLE = (
    "job_type",
    "payload",
    "queue",
    "priority",
    "key",
    "cron",
    "every",
    "timezone",
    "catch_up",
)


def add_schedule(
    name: str,
    job_type: str,
    payload: Mapping[str, Any] | None = None,
    *,
    cron: str | None = None,
    every: float | timedelta | None = None,
    timezone: str = "UTC",
    catch_up: str = "latest",
    queue: str | None = None,
    priority: int | None = None,
    key: str = "",
    enabled: bool = True,
    using: str | None = None,
) -> Schedule:
    """Add a schedule and return it; every tick enqueues `job_type` with the same `payload`.

    `name` is its own. Give either `cron`, five fields in `timezone`, or `every`, seconds or a
    timedelta (seed S3). Of missed ticks, `catch_up` takes the "latest", "all" or "none". `queue`
    and `priority` (-100 to 100, larger first) are the jobs', as declared where they are left out.
    While a job with `key` is live, ticks enqueue none. It ticks from now on unless `enabled` is
    False. Raises ScheduleError, before anything is written, for what is wrong or a name that is
    taken.
    """
    given = {"cron": cron, "every": every, "timezone": timezone, "catch_up": catch_up}
    given |= {"queue": queue, "priority": priority, "key": key}
    values = checked_schedule({"job_type": job_type, "payload": payload, **given})
    values["name"] = checked_text("name", name)
    connection = _connection(using)
    if enabled:
        values["next_tick"] = _rule(values).after(database_now(connection))
    try:
        with transaction.atomic(using=connection.alias):
            objects = Schedule.objects.using(connection.alias)
            made = objects.create(enabled=enabled, **values)
    except IntegrityError as error:
        if not dialect_for(connection).is_duplicate(error):
            raise
        raise ScheduleError(f"there is a schedule named {name!r} already") from None
    # Where INSERT returns nothing, Django 5.2 leaves the columns' defaults as expressions.
    added: Schedule = objects.get(pk=made.pk)
    return added


def edit_schedule(name: str, *, using: str | None = None, **changes: Any) -> Schedule:
    """Change of the schedule `name` what `add_schedule` takes, but for name and enabled; return it.

    With `cron`, `every` goes, and the other way round. It ticks next on its new grid. Raises
    ScheduleError for what is wrong, without a schedule of that name, and for one declared in
    code: change it there.
    """
    if unknown := set(changes) - set(_EDITABLE):
        raise TypeError(f"a schedule has no {', '.join(sorted(unknown))} to edit")
    connection = _connection(using)
    with transaction.atomic(using=connection.alias):
        schedule = _locked(connection, name)
        if schedule.declared_in_code:
            raise ScheduleError(f"schedule {name!r} is declared in code: change it there")
        given = {field: getattr(schedule, field) for field in _EDITABLE if field != "queue"}
        given["queue"] = schedule.queue_name
        for one, other in (("cron", "every"), ("every", "cron")):
            if changes.get(one):
                given[other] = None
        values = checked_schedule({**given, **changes})
        same_type = values["job_type"] == schedule.job_type
        undeclared = registry.get(schedule.job_type) is None
        if same_type and (undeclared or values["payload"] == schedule.payload):
            # An old payload stays one, to be upcast; and of a type that is not declared here
            # nobody knows another version than the row's.
            del values["payload_version"]
        if schedule.enabled:
            values["next_tick"] = _following(connection, schedule, _rule(values))
        _update(connection, schedule, values)
    return schedule


def enable_schedule(name: str, *, using: str | None = None) -> bool:
    """Let the schedule `name` tick again, from its next tick on; False when it did already.

    Raises ScheduleError without a schedule of that name.
    """
    connection = _connection(using)
    with transaction.atomic(using=connection.alias):
        schedule = _locked(connection, name)
        if schedule.enabled:
            return False
        following = _following(connection, schedule, _rule(vars(schedule)))
        _update(connection, schedule, {"enabled": True, "next_tick": following})
    return True


def disable_schedule(name: str, *, using: str | None = None) -> bool:
    """Let the schedule `name` tick no more until it is enabled; False when it did not.

    What it has enqueued already stays. Raises ScheduleError without a schedule of that name.
    """
    connection = _connection(using)
    with transaction.atomic(using=connection.alias):
        schedule = _locked(connection, name)
        if not schedule.enabled:
            return False
        _update(connection, schedule, {"enabled": False, "next_tick": None})
    return True


def run_schedule(name: str, *, token: str = "", using: str | None = None) -> Job:
    """Enqueue the job of the schedule `name` now, besides its ticks, whether it is enabled or not.

    Its `created` is False when the schedule has a key and a live job holds it, or a job was
    enqueued with this `token` before: that one is returned. Without a token each call is one of
    its own. Raises ScheduleError without a schedule of that name.
    """
    connection = _connection(using)
    dialect = dialect_for(connection)
    sql = f"SELECT {row_columns(connection)} FROM leasequeue_schedule WHERE name = %s"
    rows = ask(connection, tagged("tick", sql), [name])
    if not rows:
        raise ScheduleError(f"there is no schedule named {name!r}")
    request = job_of(Row.read(dialect, rows[0]), None, token)
    job_id, created = repeat(connection, lambda: insert_one(connection, request))
    job = Job.objects.using(connection.alias).defer("payload").get(pk=job_id)
    job.created = created
    return job


def list_schedules(*, using: str | None = None) -> list[Schedule]:
    """Return all schedules by name. Raises nothing but the database's errors."""
    return list(Schedule.objects.using(_connection(using).alias).order_by("name"))


def next_ticks(schedule: Schedule, count: int = 5, *, using: str | None = None) -> list[datetime]:
    """Return the next `count` ticks of a `schedule`, in its time zone, as if it were enabled.

    It may be one that is not saved. Raises ScheduleError for a rule that is wrong.
    """
    rule = _rule(vars(schedule))
    ticks = [next_tick(rule, database_now(_connection(using)), schedule.last_tick)]
    while len(ticks) < count:
        ticks.append(rule.after(ticks[-1]))
    zone = ZoneInfo(rule.timezone)
    return [tick.astimezone(zone) for tick in ticks[:count]]


def _connection(using: str | None) -> BaseDatabaseWrapper:
    return connections[using or get_conf().DATABASE]


def _rule(values: Mapping[str, Any]) -> Rule:
    return Rule.of(cron=values["cron"], every=values["every"], timezone=values["timezone"])


def _locked(connection: BaseDatabaseWrapper, name: str) -> Schedule:
    rows = Schedule.objects.using(connection.alias).select_for_update().filter(name=name)
    schedule: Schedule | None = rows.first()
    if schedule is None:
        raise ScheduleError(f"there is no schedule named {name!r}")
    return schedule


def _following(connection: BaseDatabaseWrapper, schedule: Schedule, rule: Rule) -> datetime:
    return next_tick(rule, database_now(connection), schedule.last_tick)


def _update(connection: BaseDatabaseWrapper, schedule: Schedule, values: Mapping[str, Any]) -> None:
    """Write columns of a locked schedule, to the object as well."""
    rows = Schedule.objects.using(connection.alias).filter(pk=schedule.pk)
    rows.update(updated_at=UtcNow(), **values)
    for field, value in values.items():
        setattr(schedule, field, value)
