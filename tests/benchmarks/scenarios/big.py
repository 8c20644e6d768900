"""A table after months, a hundred times the jobs of a drain done: drains, claims, pruning."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from django.db import connections

from django_leasequeue.core.claim import ClaimSettings, claim
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.models import Job
from tests.benchmarks import tables
from tests.benchmarks.drains import MANAGE, PER_JOB, Drain, WrongResult, limit, worker
from tests.benchmarks.machine import percentile
from tests.benchmarks.project import url_of
from tests.benchmarks.rounds import Bench, Comparison, Contestant, Scenario
from tests.harness.tied import tied

#: Of the jobs of a drain: done, in the future, ready.
DONE, FUTURE, READY = 100, 20, 10
CLAIMS = 1000


def filled(bench: Bench) -> None:
    """Make the second database the big one, unless the scenario before has done so."""
    if Job.objects.using("big").filter(status="done").count() >= DONE * bench.jobs:
        reset("big")
        return
    moment = tables.later("big", -86_400)
    done = {"status": "'done'", "attempts": "1", "claims": "1", "finished_at": moment}
    tables.empty("big")
    tables.fill("big", DONE * bench.jobs, columns={**done, "available_at": moment})
    tables.record_done("big")
    tomorrow = {"available_at": tables.later("big", 86_400)}
    tables.fill("big", FUTURE * bench.jobs, columns=tomorrow)
    tables.fill("big", READY * bench.jobs)
    tables.analyze("big")


def reset(alias: str) -> None:
    """Make claimed jobs ready again."""
    tables.execute(
        alias,
        "UPDATE leasequeue_job SET status = 'ready', attempts = 0, lease_until = NULL, "
        "lease_token = NULL WHERE status = 'reserved'",
    )


class Standing(Drain):
    """A drain of some of the jobs of the big table, which is topped up before each."""

    def prepare(self) -> None:
        """Add what will be taken."""
        tables.fill(self.alias, self.count)
        tables.analyze(self.alias)


def drains(bench: Bench) -> dict[str, Contestant]:
    """Return a worker and the loop, each on an empty table and on the big one."""
    filled(bench)
    most = ("--max-jobs", str(bench.jobs))
    one, loop = worker("--processes", "1", *most), limit(*PER_JOB, *most)
    return {
        "1 child, big table": Standing(bench.folder, one, bench.jobs, alias="big"),
        "1 child, empty table": Drain(bench.folder, one, bench.jobs),
        "per-job limit, big table": Standing(bench.folder, loop, bench.jobs, alias="big"),
        "per-job limit, empty table": Drain(bench.folder, loop, bench.jobs),
    }


@dataclass
class Claims:
    """Claims of one job each, made in this process; on the big table also beside a prune."""

    alias: str
    jobs: int
    pruning: bool = False

    def __call__(self) -> dict[str, float]:
        """Return the median and the 95th percentile in milliseconds."""
        connection = connections[self.alias]
        if self.alias == "default":
            tables.empty("default")
            tables.fill("default", self.jobs)
            tables.analyze("default")
        lanes, settings = Lanes(("*",)), ClaimSettings("bench", 600, {})
        times = []
        with prune_beside(self.alias) if self.pruning else nothing():
            for _ in range(min(CLAIMS, self.jobs // 2)):
                began = time.perf_counter()
                if len(claim(connection, lanes, 1, settings)) != 1:
                    raise WrongResult("a claim found nothing")
                times.append((time.perf_counter() - began) * 1000)
        reset(self.alias)
        return {"p50": median(times), "p95": percentile(times, 95)}


@contextmanager
def nothing() -> Iterator[None]:
    """Be quiet."""
    yield


@contextmanager
def prune_beside(alias: str) -> Iterator[None]:
    """Let `leasequeue prune` run in another process, which has begun to delete."""
    before = Job.objects.using(alias).filter(status="done").count()
    command = [sys.executable, str(MANAGE), "leasequeue", "prune", "--older-than", "60s"]
    environment = {**os.environ, "DATABASE_URL": url_of(alias)}
    process = subprocess.Popen(
        tied(command), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        while Job.objects.using(alias).filter(status="done").count() == before:
            if process.poll() is not None:
                raise WrongResult(f"prune ended with {process.returncode}")
            time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


def claims(bench: Bench) -> dict[str, Contestant]:
    """Return claims on both tables, and beside a prune."""
    filled(bench)
    return {
        "big table": Claims("big", bench.jobs),
        "empty table": Claims("default", bench.jobs),
        "big table, beside prune": Claims("big", bench.jobs, pruning=True),
    }


SCENARIOS = (
    Scenario(
        name="big",
        title="Drain of a big table",
        unit="jobs/s",
        contestants=drains,
        comparisons=(
            Comparison("1 child, big table", "1 child, empty table", at_least=0.77),
            Comparison("1 child, big table", "per-job limit, big table"),
            Comparison("per-job limit, big table", "per-job limit, empty table"),
        ),
    ),
    Scenario(
        name="claims",
        title="Claims in a big table",
        unit="ms",
        contestants=claims,
        comparisons=(
            Comparison("big table, p50", "empty table, p50", at_most=1.3),
            Comparison("big table, beside prune, p95", "big table, p95", at_most=1.5),
        ),
    ),
)
