"""`leasequeue status`: what lies in each queue, who works, and what needs a human."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import Error, connections

from django_leasequeue.cli.base import DONE, PROBLEM, SubCommand
from django_leasequeue.cli.output import Output, moment
from django_leasequeue.cli.overview import Overview, age, as_json, count, needs, read_overview
from django_leasequeue.cli.values import number_from, seconds_from

__all__ = ["ShowStatus"]

_TITLES = ("queue", "ready", "oldest", "scheduled", "reserved", "parked", "dead", "paused")
_WORKER_TITLES = ("worker", "seen", "children", "jobs", "queues")


class ShowStatus(SubCommand):
    """One look, or one every few seconds. It only reads, a bounded number of rows."""

    name = "status"
    help = (
        "Shows what lies in each queue, the workers, and what needs a human. Counts end at a "
        "limit and then have a +. Ages are by the database's clock."
    )
    examples = """
        manage.py leasequeue status
        manage.py leasequeue status --check --json
        manage.py leasequeue status --watch 5
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "it was shown",
        PROBLEM: "with --check: something needs a human; or the database cannot be reached",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--watch",
            nargs="?",
            type=seconds_from(0.1),
            const=2.0,
            metavar="SECONDS",
            help="show it again every so many seconds (2), until Ctrl-C",
        )
        add("--queues", type=number_from(1, 10_000), default=1000, help="show so many queues")
        add("--check", action="store_true", help="exit code 1 when something needs a human")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        while options["watch"] is not None:
            self._watched(options, out)
            time.sleep(options["watch"])
        found = self._show(options, out)
        return PROBLEM if options["check"] and needs(found) else DONE

    def _watched(self, options: Mapping[str, Any], out: Output) -> None:
        """Show it once more; a database that is away is what somebody watches for."""
        try:
            self._show(options, out, again=True)
        except Error as error:
            connections[options["database"]].close()
            out.warn(f"The database cannot be used: {type(error).__name__}")
        out.flush()

    def _show(self, options: Mapping[str, Any], out: Output, *, again: bool = False) -> Overview:
        found = read_overview(options["database"], options["queues"])
        if options["json"]:
            out.json(as_json(found))
            return found
        if again:
            out.again()
        _print(found, out)
        return found


def _print(found: Overview, out: Output) -> None:
    out.line(f"{moment(found.now)}  database {found.database}")
    out.line()
    if found.queues:
        out.table(_TITLES, (_queue_row(found, one.queue) for one in found.queues))
    else:
        out.line("no jobs")
    if not found.complete:
        out.line("more queues are not shown: --queues")
    out.line()
    if found.workers:
        out.table(_WORKER_TITLES, (_worker_row(found, worker) for worker in found.workers))
    else:
        out.line("no worker is running, and none has vanished within a day")
    if found.more_workers:
        out.line("more workers are not shown")
    out.line()
    for need in needs(found):
        out.line(f"! {need}")
    out.line(f"pending burials: {count(found.pending_burials)}")


def _queue_row(found: Overview, name: str) -> tuple[object, ...]:
    one = found.by_name[name]
    pause = found.paused.get(name)
    counts = (one.scheduled, one.reserved, one.parked, one.dead)
    oldest = age(one.oldest_ready) if one.ready else None
    return (name, count(one.ready), oldest, *map(count, counts), pause and pause.described())


def _worker_row(found: Overview, worker: Any) -> tuple[object, ...]:
    seen = age((found.now - worker.seen_at).total_seconds()) + " ago"
    # Plain SQL can have put in any JSON.
    queues, jobs = (
        value if isinstance(value, list) else [] for value in (worker.queues, worker.current_jobs)
    )
    return worker.name, seen, str(worker.children), str(len(jobs)), ",".join(map(str, queues))
