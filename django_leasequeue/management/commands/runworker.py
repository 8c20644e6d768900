"""`manage.py runworker`: run a worker until it is stopped."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from django_leasequeue.logs import WorkerLogs
from django_leasequeue.runtime.worker import Worker

__all__ = ["Command", "add_worker_arguments", "run_worker"]


def add_worker_arguments(parser: ArgumentParser) -> None:
    """Add the worker's options, which `leasequeue worker` shares."""
    add = parser.add_argument
    add("--queues", default="*", help="queues to work on, strict in this order; '*' goes round all")
    add("--lease", type=float, help="seconds a claim is exclusive without renewal")
    add("--drain", action="store_true", help="end when nothing is due, reserved or soon retried")
    add("--drain-wait", type=float, default=60, help="seconds a drain waits for retries")
    add("--max-jobs", type=int, help="end after so many jobs")
    add("--poll-min", type=float, help="shortest wait of an idle worker, in seconds")
    add("--poll-max", type=float, help="longest wait of an idle worker, in seconds")
    add("--grace", type=float, help="seconds running handlers may take after SIGTERM")
    add("--name", default="worker", help="first part of the worker's name")
    add("--log-format", choices=("json", "text"), default="json", help="format of log lines")
    add("--database", help="alias of the queue's database")


def run_worker(options: dict[str, Any]) -> int:
    """Run a worker with the command's options and return its exit code."""
    names = (
        "queues",
        "lease",
        "drain",
        "drain_wait",
        "max_jobs",
        "poll_min",
        "poll_max",
        "grace",
        "name",
        "database",
    )
    given = {name: options[name] for name in names if options[name] is not None}
    try:
        worker = Worker(**given)
    except ImproperlyConfigured as error:
        raise CommandError(str(error)) from None
    with WorkerLogs(options["log_format"]):
        return worker.run()


class Command(BaseCommand):
    help = (
        "Runs a worker until SIGTERM or SIGINT. Exit code 0 after an orderly end, 1 after a fatal "
        "error or a long outage of the database: let the supervisor start it again."
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
