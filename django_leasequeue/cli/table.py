"""The list of sub-commands. Nothing is imported before it is needed: `--help` is quick."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.module_loading import import_string

from django_leasequeue.cli.base import SubCommand

__all__ = ["TABLE", "load"]


class Listed(NamedTuple):
    """Where a sub-command's class is, below this package, and its line in the list of all."""

    target: str
    summary: str


TABLE: dict[str, Listed] = {
    "status": Listed("status.ShowStatus", "what lies in each queue, who works, what needs a human"),
    "jobs": Listed("jobs.ShowJobs", "list jobs, or show some with their attempts"),
    "enqueue": Listed("enqueue.Enqueue", "enqueue one job"),
    "requeue": Listed(
        "requeue.Requeue", "make dead or cancelled jobs ready again, few or very many"
    ),
    "cancel": Listed("cancel.Cancel", "cancel jobs, running ones too"),
    "pause": Listed("queues.Pause", "put a queue on hold"),
    "resume": Listed("queues.Resume", "let a paused queue run again"),
    "recover": Listed("recover.Recover", "take back expired leases now"),
    "prune": Listed("prune.Prune", "delete old finished jobs"),
    "schedules": Listed("schedules.ShowSchedules", "list the periodic work"),
    "doctor": Listed("doctor.Examine", "look for what could be wrong, and say what to do"),
    "health": Listed("health.Health", "one look at a worker or the database, for probes"),
    "worker": Listed("worker.RunWorker", "run a worker, as runworker does"),
    "import": Listed("import_.Import", "take over another queue's schedules or waiting tasks"),
    "sign": Listed("sign.Sign", "sign the jobs that have no signature"),
}


def load(name: str) -> SubCommand:
    """Return a new object of the sub-command that the table lists as `name`."""
    found: type[SubCommand] = import_string(f"django_leasequeue.cli.{TABLE[name].target}")
    return found()
