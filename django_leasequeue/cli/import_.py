"""`leasequeue import`: take over another queue's schedules or waiting tasks."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, get_args

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import connections

from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.importers.base import Importer, Line, State, Wish, checked_map
from django_leasequeue.importers.table import IMPORTERS

__all__ = ["Import"]


class Import(SubCommand):
    """Import row by row; what an earlier import made is left as it is."""

    name = "import"
    help = (
        "Takes over schedules of django-celery-beat or django-q2, or waiting tasks of "
        "django-tasks-db, from the project's database. May be repeated: nothing is made twice. "
        "Schedules arrive disabled."
    )
    examples = """
        manage.py leasequeue import celery-beat --map shop.tasks.report=report.generate --dry-run
        manage.py leasequeue import django-q2 --json
        manage.py leasequeue import django-tasks-db --mark
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "everything is here",
        PROBLEM: "something has no counterpart and was left; or the database cannot be reached",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("source", choices=IMPORTERS, help="where from")
        add(
            "--map",
            action="append",
            default=[],
            metavar="OLD=JOB_TYPE",
            help="the job type for a function over there; without, one of the same name",
        )
        add("--dry-run", action="store_true", help="tell what would become of each, write nothing")
        add("--enable", action="store_true", help="schedules: enable those enabled over there")
        add("--mark", action="store_true", help="tasks: close each row over there with its job")
        add("--source-database", metavar="ALIAS", help="alias of the source's database")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        importer = _importer(options)
        counts: Counter[str] = Counter()
        rows: list[dict[str, Any]] = []
        with out.progress(importer.count(), f"import {options['source']}") as progress:
            for line in importer.run():
                counts[line.state] += 1
                if options["json"]:
                    rows.append(asdict(line))
                else:
                    out.line(_described(line, dry_run=options["dry_run"]))
                progress.advance()
        if options["json"]:
            out.json({"dry_run": options["dry_run"], "rows": rows})
        else:
            for state in get_args(State):
                out.line(f"{_said(state, dry_run=options['dry_run'])}: {counts[state]}")
        return PROBLEM if counts["left"] else DONE


def _importer(options: Mapping[str, Any]) -> Importer:
    """Return the importer, ready to run; refuse what it could not do."""
    kind, alias = IMPORTERS[options["source"]], options["source_database"]
    if (options["mark"] and not kind.marks) or (options["enable"] and kind.marks):
        raise CommandError("--mark is for tasks, --enable for schedules.", returncode=REFUSED)
    if alias is not None and alias not in connections:
        raise CommandError(f"--source-database: no alias {alias!r}.", returncode=REFUSED)
    told = {name: options[name] for name in ("database", "dry_run", "enable", "mark")}
    try:
        job_types = checked_map(options["map"])
        return kind(Wish(job_types=job_types, source_database=alias, **told))
    except ImproperlyConfigured as error:
        raise CommandError(str(error), returncode=REFUSED) from None


def _described(line: Line, *, dry_run: bool) -> str:
    words = [_said(line.state, dry_run=dry_run), line.source]
    words += ["->", line.target] if line.target else []
    return " ".join(words) + (f" ({'; '.join(line.notes)})" if line.notes else "")


def _said(state: str, *, dry_run: bool) -> str:
    return "would import" if dry_run and state == "imported" else state
