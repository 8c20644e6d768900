"""`manage.py runworker`: run a worker until it is stopped."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from django_leasequeue.cli.worker import add_worker_arguments, run_worker


class Command(BaseCommand):
    help = (
        "Runs a worker until SIGTERM or SIGINT. Exit code 0 after an orderly end, 1 after a fatal "
        "error or a long outage of the database: let the supervisor start it again; 2 for options "
        "that are wrong."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker_arguments(parser)

    def check(self, *args: Any, **kwargs: Any) -> None:
        # Django 6.1 connects to every database for this; a worker waits for one that is away.
        super().check(*args, **{**kwargs, "databases": []})

    def handle(self, *args: Any, **options: Any) -> None:
        code = run_worker(options)
        if code:
            sys.exit(code)
