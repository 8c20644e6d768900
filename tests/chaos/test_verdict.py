"""The storm's verdict sees every kind of broken promise."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_leasequeue import add_schedule, enqueue
from django_leasequeue.models import Job, JobAttempt, Schedule
from tests.chaos import effects
from tests.chaos.verdict import judge

CLAIM = 3


@pytest.fixture(autouse=True)
def schedule(queue_db):
    """A table of effects, and a schedule that has ticked twice."""
    effects.create()
    added = add_schedule("storm", "storm.tick", every=1)
    last = added.next_tick + timedelta(seconds=1)
    for tick in (added.next_tick, last):
        job_id = ended("storm.tick")
        Job.objects.filter(pk=job_id).update(schedule="storm", tick_at=tick)
    Schedule.objects.update(last_tick=last)
    yield added
    effects.drop()


def ended(kind, status="done", *, claim=CLAIM, count=1, fenced=True, **columns):
    """Return the id of a job that has ended, with so many effects and an attempt if it is done."""
    job_id = enqueue(kind).id
    Job.objects.filter(pk=job_id).update(status=status, claims=CLAIM, **columns)
    if status == "done":
        attempted(job_id, CLAIM)
    for _ in range(count):
        effects.write(job_id, claim, fenced=fenced)
    return job_id


def attempted(job_id, number):
    JobAttempt.objects.create(
        job_id=job_id, number=number, token=bytes([number]) * 16, outcome="completed"
    )


def broken(schedule, acknowledged=()):
    verdict = judge(set(acknowledged), "storm", schedule.next_tick)
    counts = {name: count for name, count in verdict.broken.items() if count}
    assert bool(counts) == bool(verdict.problems)
    return counts


def test_a_storm_that_broke_nothing(schedule):
    jobs = [
        ended("storm.completing"),
        ended("storm.charging", claim=1),
        ended("storm.charging", "cancelled"),
        ended("storm.atomic", "cancelled", count=0),
        ended("storm.plain", count=2, fenced=False),
        ended("storm.cancelling", "cancelled", count=0),
        ended("storm.hopeless", "dead", count=0, attempts=3),
        ended("storm.poison", "dead", count=0, attempts=2, crashes=2),
    ]
    verdict = judge(set(jobs), "storm", schedule.next_tick)
    assert verdict.problems == []
    assert set(verdict.broken.values()) == {0}
    assert (verdict.effects, verdict.repeats, verdict.ticks) == (5, 1, 2)
    assert verdict.jobs["dead"] == 2


@pytest.mark.parametrize(
    ("job", "promise"),
    [
        ({"kind": "storm.completing", "count": 2}, "doubles"),
        ({"kind": "storm.charging", "count": 2}, "doubles"),
        ({"kind": "storm.atomic", "status": "cancelled"}, "doubles"),
        ({"kind": "storm.slow", "claim": 2}, "doubles"),
        ({"kind": "storm.coroutine", "count": 0}, "lost"),
        ({"kind": "storm.plain", "count": 0}, "lost"),
        ({"kind": "storm.failing", "status": "dead", "count": 0}, "wrong ends"),
        ({"kind": "storm.hopeless", "status": "dead", "attempts": 4, "count": 0}, "wrong ends"),
        ({"kind": "storm.poison", "status": "dead", "crashes": 1, "count": 0}, "wrong ends"),
    ],
)
def test_a_broken_promise(schedule, job, promise):
    ended(**job)
    assert promise in broken(schedule)


def test_a_job_that_is_gone(schedule):
    job_id = ended("storm.completing")
    assert broken(schedule, [job_id, job_id + 1]) == {"lost": 1}


def test_a_job_that_was_completed_twice(schedule):
    attempted(ended("storm.plain", fenced=False), CLAIM - 1)
    assert broken(schedule) == {"doubles": 1}


def test_a_job_that_is_done_and_was_never_completed(schedule):
    JobAttempt.objects.filter(job_id=ended("storm.plain", fenced=False)).delete()
    assert broken(schedule) == {"lost": 1}


def test_an_attempt_that_no_claim_began(schedule):
    job_id = ended("storm.plain", fenced=False)
    Job.objects.filter(pk=job_id).update(claims=CLAIM - 1)
    assert broken(schedule) == {"wrong ends": 1}


def test_a_tick_that_is_missing(schedule):
    Schedule.objects.update(last_tick=schedule.next_tick + timedelta(seconds=2))
    assert broken(schedule) == {"ticks missing": 1}


def test_a_tick_that_is_there_twice(schedule):
    job_id = ended("storm.tick")
    Job.objects.filter(pk=job_id).update(schedule="storm", tick_at=schedule.next_tick)
    assert broken(schedule) == {"ticks doubled": 1}
