"""What a storm has left in the database, against what must be there: the promise, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count

from django_leasequeue.models import Job, JobAttempt, Schedule
from tests.chaos.kinds import ENDS, FENCED

_SHOWN = 10


@dataclass
class Verdict:
    """The figures of a storm; `problems` has a sentence for each promise that was broken."""

    jobs: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    effects: int = 0
    repeats: int = 0
    ticks: int = 0
    #: Broken promises by name; each has to be 0.
    broken: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def expect_none(self, name: str, found: Collection[Any], what: str) -> None:
        """Count what should not be there, and say it if there is any."""
        self.broken[name] = self.broken.get(name, 0) + len(found)
        if found:
            self.problems.append(f"{what}: {len(found)}, such as {sorted(found)[:_SHOWN]}")


def judge(acknowledged: set[int], schedule: str, first_tick: datetime | None) -> Verdict:
    """Look at all jobs, attempts, effects and ticks, once every job is final."""
    verdict = Verdict()
    verdict.jobs.update(_counts(Job.objects.values_list("status")))
    verdict.attempts.update(_counts(JobAttempt.objects.values_list("outcome")))
    _effects(verdict)
    _jobs(verdict, acknowledged)
    _attempts(verdict)
    _ticks(verdict, schedule, first_tick)
    return verdict


def _counts(rows: Any) -> dict[str, int]:
    return dict(rows.annotate(count=Count("id")).order_by())


def _effects(verdict: Verdict) -> None:
    statuses: dict[int, tuple[str, str]] = {
        job: (kind, status) for job, kind, status in _jobs_by_id(FENCED)
    }
    completed = dict(JobAttempt.objects.filter(outcome="completed").values_list("job_id", "number"))
    fenced = _rows("SELECT job_id, name, claim FROM chaos_effect WHERE fenced = 1")
    verdict.effects = len(fenced)
    counted = Counter((job, name) for job, name, _claim in fenced)
    doubled = [key for key, count in counted.items() if count > 1]
    verdict.expect_none("doubles", doubled, "fenced effects that are there more than once")

    done = {job for job, (_kind, status) in statuses.items() if status == "done"}
    missing = done - {job for job, _name, _claim in fenced}
    verdict.expect_none("lost", missing, "jobs done without their effect")
    # The effect of context.effect() stands by itself: the others are there with "done" or not.
    last = [row for row in fenced if statuses.get(row[0], ("",))[0] != "storm.charging"]
    early = {job for job, _name, _claim in last} - done
    verdict.expect_none("doubles", early, "fenced effects of jobs that are not done")
    others = [(job, claim) for job, _name, claim in last if claim != completed.get(job)]
    verdict.expect_none("doubles", others, "effects of another claim than the one that completed")

    plain = _rows("SELECT job_id FROM chaos_effect WHERE fenced = 0 AND name = 'done'")
    ran = Counter(job for (job,) in plain)
    verdict.repeats = sum(count - 1 for count in ran.values())
    unrun = {job for job, _kind, status in _jobs_by_id(["storm.plain"]) if status == "done"}
    verdict.expect_none("lost", unrun - set(ran), "plain jobs done without having run")


def _jobs(verdict: Verdict, acknowledged: set[int]) -> None:
    jobs = list(Job.objects.values_list("id", "job_type", "status", "attempts", "crashes"))
    gone = acknowledged - {job for job, *_rest in jobs}
    verdict.expect_none("lost", gone, "jobs whose enqueue was acknowledged and that are not there")
    wrong = [(job, kind, status) for job, kind, status, *_ in jobs if status not in ENDS[kind]]
    verdict.expect_none("wrong ends", wrong, "jobs that ended as they never should")
    budgets = [
        (job, kind, attempts, crashes)
        for job, kind, status, attempts, crashes in jobs
        if status == "dead" and (attempts != 3 if kind == "storm.hopeless" else crashes != 2)
    ]
    verdict.expect_none("wrong ends", budgets, "dead jobs that had another number of attempts")


def _attempts(verdict: Verdict) -> None:
    ends = Counter(JobAttempt.objects.filter(outcome="completed").values_list("job_id", flat=True))
    twice = [job for job, count in ends.items() if count > 1]
    verdict.expect_none("doubles", twice, "jobs completed more than once")
    done = set(Job.objects.filter(status="done").values_list("id", flat=True))
    verdict.expect_none("lost", done ^ set(ends), "jobs done and not completed, or the reverse")
    beyond = _rows(
        "SELECT a.job_id FROM leasequeue_jobattempt a JOIN leasequeue_job j ON j.id = a.job_id "
        "WHERE a.number > j.claims OR j.attempts > j.claims"
    )
    verdict.expect_none("wrong ends", beyond, "jobs with more attempts than claims")


def _ticks(verdict: Verdict, schedule: str, first: datetime | None) -> None:
    last = Schedule.objects.get(name=schedule).last_tick
    if first is None or last is None:
        verdict.problems.append("the schedule has never ticked")
        return
    found = Counter(Job.objects.filter(schedule=schedule).values_list("tick_at", flat=True))
    verdict.ticks = sum(found.values())
    wanted = round((last - first).total_seconds()) + 1
    verdict.expect_none("ticks missing", range(len(found), wanted), "ticks that have no job")
    doubled = [str(tick) for tick, count in found.items() if count > 1]
    verdict.expect_none("ticks doubled", doubled, "ticks with more than one job")


def _jobs_by_id(kinds: Collection[str]) -> list[tuple[int, str, str]]:
    rows = Job.objects.filter(job_type__in=kinds)
    return list(rows.values_list("id", "job_type", "status"))


def _rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
