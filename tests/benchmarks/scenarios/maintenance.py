"""Prune, recover and requeue of ten thousand jobs, against hand-written chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.db import connection

from django_leasequeue import JobFilter, prune, requeue, requeue_many
from django_leasequeue.core.operate import recover
from django_leasequeue.models import Job
from tests.benchmarks import tables
from tests.benchmarks.drains import WrongResult
from tests.benchmarks.limits import maintenance
from tests.benchmarks.limits.driver import Database, connect
from tests.benchmarks.project import url_of
from tests.benchmarks.rounds import Bench, Comparison, Scenario

_TOKENS = {
    "mysql": "X'61616161616161616161616161616161'",
    "postgresql": r"'\x61616161616161616161616161616161'::bytea",
    "sqlite": "X'61616161616161616161616161616161'",
}


@dataclass
class Upkeep:
    """`work` is done on `count` jobs with these columns, and leaves `left` jobs as `status`."""

    count: int
    columns: Callable[[], dict[str, str]]
    work: Callable[[], object]
    status: str
    left: int
    attempts: bool = field(default=False, kw_only=True)

    def __call__(self) -> dict[str, float]:
        """Return the jobs per second."""
        tables.empty("default")
        tables.fill("default", self.count, columns=self.columns())
        if self.attempts:
            tables.record_done("default")
        tables.analyze("default")
        began = time.perf_counter()
        self.work()
        seconds = time.perf_counter() - began
        found = Job.objects.filter(status=self.status).count()
        if found != self.left or Job.objects.count() != self.left:
            raise WrongResult(f"{found} jobs are {self.status}, of {Job.objects.count()}")
        return {"": self.count / seconds}


def by_hand(work: Callable[[Database], int]) -> Callable[[], None]:
    """Return hand-written work on a driver's own connection."""

    def run() -> None:
        database = connect(url_of("default"))
        try:
            work(database)
        finally:
            database.connection.close()

    return run


def ended(status: str) -> Callable[[], dict[str, str]]:
    """Return the columns of jobs that ended a day ago."""

    def columns() -> dict[str, str]:
        moment = tables.later("default", -86_400)
        used = {"attempts": "1", "claims": "1", "finished_at": moment, "available_at": moment}
        return {"status": f"'{status}'", **used}

    return columns


def expired() -> dict[str, str]:
    """Return the columns of jobs whose leases ran out a minute ago."""
    return {
        "status": "'reserved'",
        "attempts": "1",
        "claims": "1",
        "lease_token": _TOKENS[connection.vendor],
        "lease_until": tables.later("default", -60),
        "claimed_at": tables.later("default", -120),
        "leased_by": "'gone'",
    }


def pruning(bench: Bench) -> Mapping[str, Upkeep]:
    """Return `prune` without its pauses and chunked DELETEs."""

    def upkeep(work: Callable[[], object]) -> Upkeep:
        return Upkeep(bench.jobs, ended("done"), work, "done", 0, attempts=True)

    return {
        "prune(pause=0)": upkeep(lambda: prune(status="done", older_than=60, pause=0)),
        "chunked DELETE": upkeep(by_hand(maintenance.prune)),
    }


def recovering(bench: Bench) -> Mapping[str, Upkeep]:
    """Return `recover` and a chunked UPDATE with the attempt rows."""
    return {
        "recover()": Upkeep(bench.jobs, expired, recover, "ready", bench.jobs),
        "chunked UPDATE": Upkeep(
            bench.jobs, expired, by_hand(maintenance.recover), "ready", bench.jobs
        ),
    }


def requeueing(bench: Bench) -> Mapping[str, Upkeep]:
    """Return both ways to requeue and a chunked UPDATE."""

    def upkeep(work: Callable[[], object]) -> Upkeep:
        return Upkeep(bench.jobs, ended("dead"), work, "ready", bench.jobs)

    return {
        "requeue_many()": upkeep(lambda: requeue_many(JobFilter())),
        "requeue(ids)": upkeep(lambda: requeue(list(Job.objects.values_list("id", flat=True)))),
        "chunked UPDATE": upkeep(by_hand(maintenance.requeue)),
    }


SCENARIOS = (
    Scenario(
        name="prune",
        title="Prune",
        unit="jobs/s",
        contestants=pruning,
        comparisons=(Comparison("prune(pause=0)", "chunked DELETE"),),
    ),
    Scenario(
        name="recover",
        title="Recover expired leases",
        unit="jobs/s",
        contestants=recovering,
        comparisons=(Comparison("recover()", "chunked UPDATE"),),
    ),
    Scenario(
        name="requeue",
        title="Requeue dead letters",
        unit="jobs/s",
        contestants=requeueing,
        comparisons=(
            Comparison("requeue_many()", "chunked UPDATE"),
            Comparison("requeue(ids)", "chunked UPDATE"),
        ),
    ),
)
