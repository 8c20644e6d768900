"""`manage.py leasequeue …`: the operator's command; `worker` is the same as `runworker`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from django_leasequeue.core.resign import Selection, resign
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.management.commands.runworker import add_worker_arguments, run_worker


class Command(BaseCommand):
    help = "Operates the job queue; see 'leasequeue worker --help', 'leasequeue sign --help'."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="subcommand", required=True)
        add_worker_arguments(commands.add_parser("worker", help="run a worker"))
        add_sign_arguments(commands.add_parser("sign", help="sign the jobs that have no signature"))

    def check(self, *args: Any, **kwargs: Any) -> None:
        # Django 6.1 connects to every database for this; a worker waits for one that is away.
        super().check(*args, **{**kwargs, "databases": []})

    def handle(self, *args: Any, **options: Any) -> None:
        if options["subcommand"] == "sign":
            self.sign(options)
        elif code := run_worker(options):
            sys.exit(code)

    def sign(self, options: dict[str, Any]) -> None:
        """Sign jobs and say how many of each kind there were."""
        selection = Selection(options["queue"], options["type"], options["all"])
        try:
            counts = resign(
                selection,
                dry_run=options["dry_run"],
                force=options["force"],
                using=options["database"],
            )
        except LeaseQueueError as error:
            raise CommandError(str(error)) from None
        for kind, count in asdict(counts).items():
            self.stdout.write(f"{kind}: {count}")


def add_sign_arguments(parser: ArgumentParser) -> None:
    """Add the options of `leasequeue sign`."""
    parser.add_argument("--queue", help="only jobs of this queue")
    parser.add_argument("--type", help="only jobs of this type")
    parser.add_argument(
        "--all", action="store_true", help="finished jobs, too: a requeue needs their signature"
    )
    parser.add_argument("--dry-run", action="store_true", help="count, and write nothing")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace wrong signatures, too: trusts whatever was changed in those jobs",
    )
    parser.add_argument("--database", metavar="ALIAS", help="alias of the queue's database")
