"""`manage.py runworker`: run a worker until it is stopped."""

from __future__ import annotations

import sys
import threading
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from django_leasequeue.logs import WorkerLogs
from django_leasequeue.runtime.fleet import run_fleet
from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.runtime.profiles import workers_options
from django_leasequeue.runtime.reload import follow_watcher, is_watched, run_watcher
from django_leasequeue.runtime.worker import Worker

__all__ = ["Command", "add_worker_arguments", "run_worker"]

#: The exit code of a command line that is wrong; argparse has the same.
WRONG_OPTIONS = 2
#: What a watcher adds to a worker's own limits before it kills it.
_RELEASE_SECONDS = 10
#: A flag that tells "not given" from "off", which call_command can say.
_GIVEN: dict[str, Any] = {"action": "store_true", "default": None}


def add_worker_arguments(parser: ArgumentParser) -> None:
    """Add the worker's options, which `leasequeue worker` shares.

    None is what was not given: a profile, the settings or the worker have the value then.
    """
    add = parser.add_argument
    add("--queues", help="queues to work on, strict in this order; '*' goes round all")
    add("--handled-only", **_GIVEN, help="park jobs of types that this worker does not know")
    add("--lease", type=float, help="seconds a claim is exclusive without renewal")
    _add_processes(parser)
    _add_ends(parser)
    add("--poll-min", type=float, help="shortest wait of an idle worker, in seconds")
    add("--poll-max", type=float, help="longest wait of an idle worker, in seconds")
    add("--name", help="first part of the worker's name")
    add("--log-format", choices=("json", "text"), default="json", help="format of log lines")
    add("--database", help="alias of the queue's database")
    add("--profile", action="append", help="run LEASEQUEUE['WORKERS'][PROFILE]; may be repeated")
    add("--reload", action="store_true", help="development: start anew when code changes")


def _add_processes(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--processes", type=int, help="children, which run the handlers")
    add("--threads", type=int, help="handlers that each child runs at the same time")
    add("--solo", **_GIVEN, help="no children: handlers run here, one at a time")
    add("--kill-after", type=float, help="seconds from a handler's interrupt to its child's kill")
    add("--max-memory", type=float, help="MiB above which a child is replaced; 0: no limit")
    add("--max-jobs-per-child", type=int, help="replace a child after so many jobs; 0: never")


def _add_ends(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--drain", **_GIVEN, help="end when nothing is due, reserved or soon retried")
    add("--drain-wait", type=float, help="seconds a drain waits for retries")
    add("--max-jobs", type=int, help="end after so many jobs")
    add("--max-seconds", type=float, help="end after so many seconds")
    add("--grace", type=float, help="seconds running handlers may take after SIGTERM")


def run_worker(options: Mapping[str, Any]) -> int:
    """Run a worker, or one for each profile, with the command's options; return the exit code.

    Raises CommandError for wrong options, before anything is started.
    """
    names = {item.name for item in fields(WorkerOptions)} & set(options) - {"log_format"}
    given = {name: options[name] for name in names if options[name] is not None}
    profiles = [options["profile"]] if isinstance(options["profile"], str) else options["profile"]
    if options["reload"] and threading.current_thread() is not threading.main_thread():
        raise CommandError("--reload works in the main thread only.", returncode=WRONG_OPTIONS)
    try:
        told = workers_options(profiles or (), given)
    except ImproperlyConfigured as error:
        raise CommandError(str(error), returncode=WRONG_OPTIONS) from None
    with WorkerLogs(options["log_format"]):
        if options["reload"] and not is_watched():
            return run_watcher(_patience(told))
        return _run([Worker(**item, log_format=options["log_format"]) for item in told])


def _patience(told: Iterable[Mapping[str, Any]]) -> float:
    """Return how long a worker may take for its orderly end, in seconds."""
    workers = [WorkerOptions(**item) for item in told]
    return max(worker.grace + worker.kill_after for worker in workers) + _RELEASE_SECONDS


def _run(workers: list[Worker]) -> int:
    def stop() -> None:
        for worker in workers:
            worker.stop()

    if is_watched():
        follow_watcher(stop)
    return workers[0].run() if len(workers) == 1 else run_fleet(workers)


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
