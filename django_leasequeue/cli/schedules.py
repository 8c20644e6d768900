"""`leasequeue schedules`: the periodic work that is in the table."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django_leasequeue.cli.base import DONE, SubCommand
from django_leasequeue.cli.output import Output, moment
from django_leasequeue.cli.values import number_from
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
    """List schedules by name. It only reads."""

    name = "schedules"
    help = "Lists the periodic work: what is enqueued when, and its last and next tick."
    examples = """
        manage.py leasequeue schedules
        manage.py leasequeue schedules --json
    """
    takes_json = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        limit = number_from(1, 100_000)
        parser.add_argument("--limit", type=limit, default=1000, help="show so many schedules")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
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
