"""`leasequeue health`: one bounded look at a worker's heartbeat file, or at the database."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError

from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.runtime.heartbeat import read_heartbeat
from django_leasequeue.runtime.pulse import LIVE_SECONDS
from django_leasequeue.runtime.soundness import database_problem

__all__ = ["Health"]


class Health(SubCommand):
    """Say "ok", or what is wrong."""

    name = "health"
    help = (
        "Tells whether a worker lives, by its heartbeat file, or without one whether the queue's "
        "database can be worked with. Takes a few seconds at most."
    )
    examples = """
        manage.py leasequeue health
        manage.py leasequeue health --max-oldest 300 --json
        manage.py leasequeue health --heartbeat-file /run/leasequeue/heartbeat --ready
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        DONE: "all is well",
        PROBLEM: "something is wrong; the output says what",
        REFUSED: "the command line was refused",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--heartbeat-file", metavar="PATH", help="the file of runworker --heartbeat-file")
        add(
            "--max-age", type=float, help=f"seconds a heartbeat lasts, {LIVE_SECONDS:g} if left out"
        )
        add("--ready", action="store_true", help="the worker has to claim jobs as well")
        add("--max-oldest", type=float, help="seconds a due job may have waited; any if left out")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        problem = _problem(options)
        if options["json"]:
            out.json({"ok": not problem, "problem": problem})
        else:
            out.line(problem or "ok")
        return PROBLEM if problem else DONE


def _problem(options: Mapping[str, Any]) -> str:
    path, max_age, max_oldest = (
        options["heartbeat_file"],
        options["max_age"],
        options["max_oldest"],
    )
    for name, value in (("--max-age", max_age), ("--max-oldest", max_oldest)):
        if value is not None and not value > 0:
            raise CommandError(f"{name} must be above 0.", returncode=REFUSED)
    if path is None:
        if max_age is not None or options["ready"]:
            raise CommandError("--max-age and --ready need --heartbeat-file.", returncode=REFUSED)
        return database_problem(options["database"], max_oldest=max_oldest)
    if max_oldest is not None:
        raise CommandError(
            "--max-oldest asks the database: leave --heartbeat-file out.", returncode=REFUSED
        )
    return read_heartbeat(path, max_age=max_age or LIVE_SECONDS, ready=options["ready"])
