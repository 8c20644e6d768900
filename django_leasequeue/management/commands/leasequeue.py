"""`manage.py leasequeue …`: the operator's command; `worker` is the same as `runworker`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from django_leasequeue.management.commands.runworker import add_worker_arguments, run_worker


class Command(BaseCommand):
    help = "Operates the job queue; see 'leasequeue worker --help'."

    def add_arguments(self, parser: ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="subcommand", required=True)
        add_worker_arguments(commands.add_parser("worker", help="run a worker"))

    def check(self, *args: Any, **kwargs: Any) -> None:
        # Django 6.1 connects to every database for this; a worker waits for one that is away.
        super().check(*args, **{**kwargs, "databases": []})

    def handle(self, *args: Any, **options: Any) -> None:
        code = run_worker(options)
        if code:
            sys.exit(code)
