"""Schedules: each tick once, what code declares, what an operator changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone

from django_leasequeue import (
    add_schedule,
    disable_schedule,
    edit_schedule,
    enable_schedule,
    run_schedule,
)
from django_leasequeue.core.declared import sync_declared
from django_leasequeue.core.ticking import due_schedules, seconds_to_next, tick
from django_leasequeue.declaration import Declaration
from django_leasequeue.grid import Rule
from django_leasequeue.models import Job, Schedule
from tests.sweep.cases.working import UNWRITTEN
from tests.sweep.rounds import PLAIN, Case, Round
from tests.waiting import wait_until

Act = Callable[[], object]
DAY = 86_400


def ticking(now: Round) -> Act:
    """Each of three ticks has its job in the end, and none has two."""
    now.ends, now.repeats = ["done"] * 3, True
    schedule = due(now, PLAIN, days=3)

    def taken() -> object:
        """The row of a session that is just ending is locked: the next pass is a second later."""
        return tick(now.connection, schedule.pk) or Schedule.objects.get(pk=schedule.pk).last_tick

    def act() -> None:
        assert (seconds_to_next(now.connection, []) or 0) <= 0 or taken()
        due_schedules(now.connection, [])
        wait_until(taken)

    return act


def ticking_what_is_refused(now: Round) -> Act:
    """A tick whose job the database refuses is put off, and keeps its place."""
    now.raises = now.repeats = True
    schedule = due(now, UNWRITTEN, days=1)

    def act() -> None:
        wait_until(put_off)

    def put_off() -> bool:
        tick(now.connection, schedule.pk)
        moment = Schedule.objects.get(pk=schedule.pk).next_tick
        return moment is not None and moment > timezone.now()

    def check() -> None:
        row = Schedule.objects.get(pk=schedule.pk)
        assert (row.last_tick, Job.objects.filter(schedule=row.name).count()) == (None, 0)

    now.checks.append(check)
    return act


def due(now: Round, job_type: str, *, days: int) -> Schedule:
    """Add a schedule that has missed the ticks of some days."""
    schedule = add_schedule(now.queue, job_type, every=DAY, catch_up="all", queue=now.queue)
    first = Rule.of(every=DAY).after(timezone.now() - timedelta(days=days))
    Schedule.objects.filter(pk=schedule.pk).update(next_tick=first)
    return schedule


def declaring(now: Round) -> Act:
    """What code declares is in the database in the end, with the newest rule, and ticks later."""
    now.repeats = True

    def declared(every: int) -> Declaration:
        return Declaration(handler=lambda: None, name=now.queue, every=every)

    sync_declared(now.connection, [declared(DAY)])
    new, changed = f"{now.queue}-new", declared(DAY // 2)

    def act() -> None:
        known = [changed, replace(changed, name=new)]
        wait_until(lambda: not sync_declared(now.connection, known).pending)

    def check() -> None:
        rows = Schedule.objects.filter(name__in=(now.queue, new))
        assert [row.every for row in rows] == [DAY // 2, DAY // 2]
        assert all(row.next_tick > timezone.now() for row in rows)

    now.checks.append(check)
    return act


def changing(now: Round) -> Act:
    """An operator edits a schedule, and holds it for a while."""
    now.raises = now.repeats = True
    add_schedule(now.queue, PLAIN, every=DAY, queue=now.queue)

    def act() -> None:
        edit_schedule(now.queue, every=DAY // 2)
        disable_schedule(now.queue)
        enable_schedule(now.queue)

    def check() -> None:
        row = Schedule.objects.get(name=now.queue)
        assert (row.every, row.enabled) == (DAY // 2, True)
        assert row.next_tick is not None and row.next_tick > timezone.now()

    now.checks.append(check)
    return act


def running_now(now: Round) -> Act:
    """A firing beside the ticks: whoever was killed over it does not know whether it was."""
    now.ends, now.raises = ["done|missing"], True
    add_schedule(now.queue, PLAIN, every=DAY, queue=now.queue)
    return lambda: run_schedule(now.queue)


CASES: list[Case] = [ticking, ticking_what_is_refused, declaring, changing, running_now]
