"""Draining a queue with real processes, and its rate by the rows that they left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import Count, Max, Min

from django_leasequeue.models import Job, JobAttempt
from tests.benchmarks import tables
from tests.benchmarks.project import ROOT, url_of
from tests.benchmarks.work.models import Effect
from tests.harness.tied import tied

_SECONDS = 1800
MANAGE = ROOT / "testproject" / "manage.py"


class WrongResult(Exception):
    """What was measured did not do its work."""


@dataclass
class Drain:
    """A queue of `count` jobs and the processes that drain it, each `command` `copies` times."""

    folder: Path
    command: Sequence[str]
    count: int
    job_type: str = "bench.noop"
    copies: int = 1
    alias: str = "default"
    effects: bool = False
    settings: dict[str, object] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)

    def __call__(self) -> dict[str, float]:
        """Fill an empty table, drain it, and return the jobs per second."""
        self.prepare()
        return self.run()

    def prepare(self) -> None:
        """Fill the empty tables."""
        tables.empty(self.alias)
        tables.fill(self.alias, self.count, self.job_type)
        tables.analyze(self.alias)

    def run(self) -> dict[str, float]:
        """Drain what lies there; from the first claim to the last end, by the rows."""
        last = Job.objects.using(self.alias).aggregate(last=Max("claimed_at"))["last"]
        started = [self.start(f"{number}") for number in range(self.copies)]
        try:
            codes = [process.wait(_SECONDS) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        if any(codes):
            log = self.log("0").read_text()[-2000:]
            raise WrongResult(f"{' '.join(self.command)} ended with {codes}: {log}")
        jobs = Job.objects.using(self.alias).filter(claimed_at__isnull=False)
        return {"": self._rate(jobs.filter(claimed_at__gt=last) if last else jobs)}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        """Start one of the processes, with its log in a file."""
        environment = {
            **os.environ,
            "DATABASE_URL": url_of(self.alias),
            "BENCH_LEASEQUEUE": json.dumps(self.settings),
            "BENCH_OPTIONS": json.dumps(self.options),
        }
        with self.log(name).open("wb") as log:
            return subprocess.Popen(
                tied(self.command),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log(self, name: str) -> Path:
        """Return the file with a process's log."""
        return self.folder / f"process-{name}.log"

    def _rate(self, jobs) -> float:
        seen = jobs.filter(status="done").aggregate(
            count=Count("id"), first=Min("claimed_at"), last=Max("finished_at")
        )
        ids = jobs.values("id")
        attempts = JobAttempt.objects.using(self.alias).filter(job_id__in=ids).count()
        effects = Effect.objects.using(self.alias).count() if self.effects else self.count
        if not seen["count"] == attempts == effects == self.count:
            raise WrongResult(
                f"{' '.join(self.command)}: {self.count} jobs, of them {seen['count']} done, "
                f"with {attempts} attempts and {effects} effects"
            )
        return self.count / (seen["last"] - seen["first"]).total_seconds()


def worker(*options: str) -> list[str]:
    """Return the command of a worker."""
    return [sys.executable, str(MANAGE), "runworker", *options]


def drainer(*options: str) -> list[str]:
    """Return the command of a worker that ends when the queue is empty."""
    return worker("--drain", "--drain-wait", "0", *options)


def limit(*options: str) -> list[str]:
    """Return the command of a hand-written loop that ends when the queue is empty."""
    return [sys.executable, "-m", "tests.benchmarks.limits", *options]


PER_JOB = ("--claim", "10", "--settle", "1")
GROUPED = ("--claim", "50", "--settle", "50")
