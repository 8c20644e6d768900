"""`leasequeue worker`, which is `runworker`: run a worker until it is stopped."""

from __future__ import annotations

import threading
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.monitoring import Monitoring
from django_leasequeue.cli.output import Output
from django_leasequeue.logs import WorkerLogs
from django_leasequeue.runtime.fleet import run_fleet
from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.runtime.profiles import workers_options
from django_leasequeue.runtime.reload import follow_watcher, is_watched, run_watcher
from django_leasequeue.runtime.worker import Worker

__all__ = ["RunWorker", "add_worker_arguments", "run_worker"]

#: What a watcher adds to a worker's own limits before it kills it.
_RELEASE_SECONDS = 10
#: A flag that tells "not given" from "off", which call_command can say.
_GIVEN: dict[str, Any] = {"action": "store_true", "default": None}


class RunWorker(SubCommand):
    """The worker as a sub-command; its --database is its own, for a profile may have one."""

    name = "worker"
    help = "Runs a worker until SIGTERM or SIGINT."
    examples = """
        manage.py leasequeue worker --drain
        manage.py leasequeue worker --queues default --drain --log-format text
    """
    takes_database = False
    codes: ClassVar[Mapping[int, str]] = {
        DONE: "an orderly end, after a signal too",
        PROBLEM: "a fatal error or a long outage of the database: start it again",
        REFUSED: "options or settings that no worker could run with",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker_arguments(parser)

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        return run_worker(options)


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
    _add_monitoring(parser)
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


def _add_monitoring(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--metrics-port", type=int, help="serve /metrics, /livez and /readyz there; 0: any port")
    add("--metrics-host", default="127.0.0.1", help="the address for that port")
    add("--heartbeat-file", metavar="PATH", help="touch this file while the worker's loop turns")


def run_worker(options: Mapping[str, Any]) -> int:
    """Run a worker, or one for each profile, with the command's options; return the exit code.

    Raises CommandError for wrong options, before anything is started.
    """
    names = {item.name for item in fields(WorkerOptions)} & set(options) - {"log_format"}
    given = {name: options[name] for name in names if options[name] is not None}
    profiles = [options["profile"]] if isinstance(options["profile"], str) else options["profile"]
    if options["reload"] and threading.current_thread() is not threading.main_thread():
        raise CommandError("--reload works in the main thread only.", returncode=REFUSED)
    try:
        told = workers_options(profiles or (), given)
    except ImproperlyConfigured as error:
        raise CommandError(str(error), returncode=REFUSED) from None
    with WorkerLogs(options["log_format"]) as logs:
        if options["reload"] and not is_watched():
            return run_watcher(_patience(told))
        try:
            monitoring = Monitoring(options, lambda: logs.dropped)
            workers = _workers(told, options["log_format"], monitoring)
            monitoring.start()
        except ImproperlyConfigured as error:
            raise CommandError(str(error), returncode=REFUSED) from None
        with monitoring:
            return _run(workers)


def _workers(
    told: Iterable[Mapping[str, Any]], log_format: str, monitoring: Monitoring
) -> list[Worker]:
    workers: dict[str, Worker] = {}
    for item in told:
        name = shown = str(item.get("name", "worker"))
        while shown in workers:  # one --name for several profiles
            shown = f"{name}-{len(workers) + 1}"
        meter = monitoring.meter_for(shown)
        workers[shown] = Worker(**item, meter=meter, log_format=log_format)
    monitoring.watch(workers)
    return list(workers.values())


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
