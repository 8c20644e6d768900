"""`leasequeue schedules`: the periodic work in the table, and what an operator does to it."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from django_leasequeue.cli.base import DONE, REFUSED, SubCommand
from django_leasequeue.cli.output import Output, moment, printable
from django_leasequeue.cli.values import name_of, number_from
from django_leasequeue.core.schedules import (
    disable_schedule,
    enable_schedule,
    next_ticks,
    run_schedule,
)
from django_leasequeue.models import Schedule

__all__ = ["ShowSchedules"]

_TITLES = ("name", "type", "queue", "when", "zone", "enabled", "last tick", "next tick")
_COLUMNS = (
    "name",
    "job_type",
    "queue_name",
    "cron",
    "every",
    "timezone",
    "catch_up",
    "enabled",
    "declared_in_code",
    "last_tick",
    "next_tick",
)


class ShowSchedules(SubCommand):
    """List schedules, or show one with its next ticks, enable, disable or run it."""

    name = "schedules"
    help = (
        "Lists the periodic work: what is enqueued when, and its last and next tick. With a NAME "
        "it shows the next five ticks of one, or changes it."
    )
    examples = """
        manage.py leasequeue schedules
        manage.py leasequeue schedules --json
        manage.py leasequeue schedules nightly
        manage.py leasequeue schedules nightly --disable
        manage.py leasequeue schedules nightly --run
    """
    takes_json = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        limit = number_from(1, 100_000)
        parser.add_argument("--limit", type=limit, default=1000, help="show so many schedules")
        name = name_of(255)
        parser.add_argument("schedule", nargs="?", type=name, metavar="NAME", help="its name")
        change = parser.add_mutually_exclusive_group()
        change.add_argument("--enable", action="store_true", help="let it tick from its next tick")
        change.add_argument("--disable", action="store_true", help="let it tick no more")
        change.add_argument("--run", action="store_true", help="enqueue its job now, besides ticks")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        """Answer, or do what was asked for."""
        changing = next((word for word in _CHANGES if options[word]), None)
        if options["schedule"] is None:
            if changing:
                raise CommandError(f"--{changing} needs the NAME of a schedule", returncode=REFUSED)
            return self._list(options, out)
        if changing:
            return _change(changing, options, out)
        return _show(options, out)

    def _list(self, options: Mapping[str, Any], out: Output) -> int:
        limit = options["limit"]
        rows = Schedule.objects.using(options["database"]).order_by("name").values(*_COLUMNS)
        found = list(rows[: limit + 1])
        if options["json"]:
            out.json({"schedules": found[:limit], "more": len(found) > limit})
            return DONE
        out.table(_TITLES, (_row(schedule) for schedule in found[:limit]))
        if len(found) > limit:
            out.warn(f"More schedules are there; these are the first {limit}.")
        return DONE


_CHANGES = ("enable", "disable", "run")


def _change(word: str, options: Mapping[str, Any], out: Output) -> int:
    name, alias = options["schedule"], options["database"]
    told: dict[str, object] = {"schedule": name}
    if word == "run":
        job = run_schedule(name, using=alias)
        told |= {"job": job.pk, "created": job.created}
        text = f"job {job.pk} is {'enqueued' if job.created else 'live already, with its key'}"
    else:
        change = enable_schedule if word == "enable" else disable_schedule
        told["changed"] = changed = change(name, using=alias)
        text = f"{'' if changed else 'was '}{word}d{'' if changed else ' already'}"
    if options["json"]:
        out.json(told)
    else:
        out.line(f"{printable(name)}: {text}")
    return DONE


def _show(options: Mapping[str, Any], out: Output) -> int:
    name, alias = options["schedule"], options["database"]
    schedule = Schedule.objects.using(alias).filter(name=name).first()
    if schedule is None:
        raise CommandError(f"There is no schedule named {printable(name)!r}.", returncode=REFUSED)
    ticks = next_ticks(schedule, using=alias)
    shown = {column: getattr(schedule, column) for column in _COLUMNS}
    if options["json"]:
        out.json({"schedule": shown, "next_ticks": ticks})
        return DONE
    out.table(_TITLES, [_row(shown)])
    for tick in ticks:
        out.line(f"  {tick.isoformat()}")
    return DONE


def _row(schedule: Mapping[str, Any]) -> tuple[object, ...]:
    every = schedule["every"]
    return (
        schedule["name"],
        schedule["job_type"],
        schedule["queue_name"],
        schedule["cron"] if every is None else f"every {every:g} s",
        schedule["timezone"],
        "yes" if schedule["enabled"] else "no",
        moment(schedule["last_tick"]),
        moment(schedule["next_tick"]),
    )
