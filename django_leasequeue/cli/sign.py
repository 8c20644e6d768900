"""`leasequeue sign`: give jobs that are in the table already a signature by the newest key."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django_leasequeue.cli.base import DONE, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.core.resign import Selection, resign

__all__ = ["Sign"]


class Sign(SubCommand):
    """Sign jobs and say how many of each kind there were."""

    name = "sign"
    help = "Signs the jobs that have no signature, and tells how many of each kind there were."
    examples = """
        manage.py leasequeue sign --dry-run
        manage.py leasequeue sign --queue default --all --json
    """
    takes_json = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--queue", help="only jobs of this queue")
        add("--type", help="only jobs of this type")
        add("--all", action="store_true", help="finished jobs, too: a requeue needs a signature")
        add("--dry-run", action="store_true", help="count, and write nothing")
        add(
            "--force",
            action="store_true",
            help="replace wrong signatures, too: trusts whatever was changed in those jobs",
        )

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        counts = resign(
            Selection(options["queue"], options["type"], options["all"]),
            dry_run=options["dry_run"],
            force=options["force"],
            using=options["database"],
        )
        if options["json"]:
            out.json(asdict(counts))
            return DONE
        for kind, count in asdict(counts).items():
            out.line(f"{kind}: {count}")
        return DONE
