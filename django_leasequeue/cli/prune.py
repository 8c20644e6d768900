"""`leasequeue prune`: delete old finished jobs, for a timer and by hand."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from django.core.management.base import CommandError

from django_leasequeue.cli.base import DONE, PROBLEM, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.values import age_from, name_of, number_from, seconds_from
from django_leasequeue.conf import get_conf
from django_leasequeue.core.prune import BATCH, MOST_IN_A_BATCH, prune
from django_leasequeue.core.prune_run import Pruned
from django_leasequeue.retention import PRUNABLE, retention_of

__all__ = ["Prune"]

_STATUSES = [status.value for status in PRUNABLE]


class Prune(SubCommand):
    """Prune and say how many rows went."""

    name = "prune"
    help = (
        "Deletes finished jobs that are old enough, with their attempts and effects, a batch and a "
        "commit at a time. Without --older-than the setting RETENTION says what is old enough. "
        "Jobs that wait or run cannot be selected, dead ones only by name."
    )
    examples = """
        manage.py leasequeue prune --dry-run
        manage.py leasequeue prune --older-than 30d --archive jobs-2042-01.jsonl.gz
        manage.py leasequeue prune --status dead --type report.generate --older-than 90d --json
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "what was old enough is gone",
        PROBLEM: "rows of other tables hold some of the jobs; no disk space; or no database",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--status",
            action="append",
            choices=_STATUSES,
            help="only jobs that are done, cancelled or dead; may be given several times",
        )
        add(
            "--type",
            action="append",
            type=name_of(255),
            help="only jobs of this type; may be given several times",
        )
        add("--queue", type=name_of(64), help="only jobs of this queue")
        add(
            "--older-than",
            type=age_from,
            metavar="AGE",
            help="how long ago they ended at least: 90s, 15m, 12h, 30d, 4w; 0 is all of them",
        )
        add(
            "--archive",
            metavar="FILE",
            help="append every job to FILE (.jsonl.gz), on the disk before it is gone; "
            "what it holds are payloads",
        )
        add("--limit", type=number_from(1, 2**62), help="stop after so many jobs")
        _how_fast(parser)
        add("--dry-run", action="store_true", help="count, and write nothing")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        _warn_of_nothing(options, out)
        label = "would be pruned" if options["dry_run"] else "pruned"
        with out.progress(options["limit"], label) as under_way:
            done = _prune(options, under_way.advance)
        if options["json"]:
            out.json({**asdict(done), "dry_run": options["dry_run"]})
        else:
            for kind, number in asdict(done).items():
                out.line(f"{kind}: {number}")
        if done.referenced:
            out.warn(
                "Rows of other tables refer to some of the jobs, by a foreign key in the database: "
                "delete those rows first, or let the key cascade."
            )
        return PROBLEM if done.referenced else DONE


def _how_fast(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--batch",
        type=number_from(1, MOST_IN_A_BATCH),
        default=BATCH,
        help=f"delete at most so many jobs in a transaction; default {BATCH}",
    )
    parser.add_argument(
        "--pause",
        type=seconds_from(0),
        metavar="SECONDS",
        help="wait so long between two batches; 0: do not wait; without it 24 times as long as "
        "the one before took, 2 seconds at most",
    )


def _prune(options: Mapping[str, Any], progress: Any) -> Pruned:
    try:
        return prune(
            status=options["status"],
            job_type=options["type"],
            queue=options["queue"],
            older_than=options["older_than"],
            batch=options["batch"],
            pause=options["pause"],
            limit=options["limit"],
            archive=options["archive"],
            dry_run=options["dry_run"],
            progress=progress,
            using=options["database"],
        )
    except OSError as error:
        raise CommandError(
            f"The archive could not be written: {error.strerror}. The jobs of the last batch are "
            "still there, those before it are in the archive: free some space and run it again.",
            returncode=PROBLEM,
        ) from error


def _warn_of_nothing(options: Mapping[str, Any], out: Output) -> None:
    retention = retention_of(get_conf().RETENTION)
    if options["older_than"] is None and not any(map(retention.names, PRUNABLE)):
        out.warn(
            "LEASEQUEUE['RETENTION'] gives no jobs an age, so none of them goes: "
            "set it, or use --older-than."
        )
