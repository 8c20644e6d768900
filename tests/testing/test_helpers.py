"""Seeing what was enqueued, moving the clock, and faults on purpose."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from django_leasequeue import enqueue, job
from django_leasequeue.models import Job, JobAttempt, JobEffect
from django_leasequeue.registry import registry
from django_leasequeue.testing import (
    SimulatedCrash,
    advance,
    assert_enqueued,
    assert_not_enqueued,
    capture_jobs,
    crash_after,
    expire_lease,
    freeze,
    lose_lease,
    run_jobs,
)
from tests.backend import sample

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget():
    before = set(registry)
    yield
    for kind in set(registry) - before:
        registry.remove(kind.name)


def test_assert_enqueued():
    made = enqueue("mail.send", {"to": "a", "n": 1}, queue="mail")
    assert assert_enqueued("mail.send") == [made]
    assert_enqueued("mail.send", payload={"n": 1, "to": "a"}, queue="mail", count=1)
    assert_not_enqueued("mail.send", payload={"to": "b"})
    assert_not_enqueued("mail.other")
    for wanted in (
        {"payload": {"to": "b"}},
        {"queue": "other"},
        {"count": 2},
        {"count": 0},
    ):
        with pytest.raises(AssertionError, match=r"mail\.send"):
            assert_enqueued("mail.send", **wanted)
    with pytest.raises(AssertionError, match="found 1"):
        assert_not_enqueued("mail.send")
    with pytest.raises(TypeError):
        assert_enqueued(3)


def test_assert_enqueued_takes_job_types_and_tasks():
    @job("typed")
    def typed(n):
        pass

    typed.enqueue(3)
    sample.double.enqueue(4)
    assert_enqueued(typed, payload={"n": 3})
    for payload in ({"args": [4], "kwargs": {}}, {"value": 4}):
        assert_enqueued(sample.double, payload=payload)
    assert_not_enqueued(sample.double, payload={"value": 5})
    later = datetime(2099, 1, 1, tzinfo=UTC)
    sample.double.using(run_after=later).enqueue(value=6)
    assert_enqueued(sample.double, payload={"value": 6}, count=1)
    sample.noop.enqueue(1, [2], three=3)
    assert_enqueued(sample.noop, payload={"args": [1, [2]], "three": 3})


def test_capture_jobs():
    enqueue("before")
    with capture_jobs() as captured:
        enqueue("during", {"n": 1}, key="k")
        enqueue("during", {"n": 2}, key="k")  # the first one's
        with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012
            enqueue("undone")
            raise RuntimeError
    enqueue("after")
    assert [one.job_type for one in captured] == ["during"]
    assert len(captured) == 1
    captured.assert_enqueued("during", payload={"n": 1}, count=1)
    captured.assert_not_enqueued("before")
    with pytest.raises(AssertionError):
        captured.assert_not_enqueued("during")


def test_freeze_at_a_moment_in_the_past_and_in_the_future():
    for year in (1999, 2099):
        moment = datetime(year, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)
        with freeze(moment) as clock:
            assert clock.now == moment
            made = enqueue("t", delay=60)
            stored = Job.objects.get(pk=made.pk)
            assert (stored.available_at - moment).total_seconds() == pytest.approx(60, abs=0.001)
            assert run_jobs() == []
            clock.advance(60.5)
            assert [one.outcome for one in run_jobs()] == ["rejected"]
            after = Job.objects.get(pk=made.pk)
            assert after.finished_at == clock.now
    with pytest.raises(ValueError, match="time zone"), freeze(datetime(2042, 1, 1)):  # noqa: DTZ001
        pass


def test_clocks_inside_of_a_frozen_one():
    def due():
        return Job.objects.get(pk=enqueue("t").pk).available_at

    first, second = datetime(2042, 1, 1, tzinfo=UTC), datetime(2043, 1, 1, tzinfo=UTC)
    with freeze(first):
        with advance(60):
            assert due() == first + timedelta(seconds=60)
        with freeze(second):
            assert due() == second
        assert due() == first
    assert due() < first


def test_expire_lease_and_lose_lease_need_a_running_job():
    made = enqueue("t")
    for change in (expire_lease, lose_lease):
        with pytest.raises(ValueError, match="not running"):
            change(made)


def charging(seen):
    @job("charges", takes_context=True)
    def charges(context):
        with context.effect("charge") as first:
            if first:
                seen.append("charged")
        with context.effect("receipt"):
            pass
        with context.complete():
            seen.append("completed")


@pytest.mark.parametrize(
    ("point", "name", "attempts", "seen"),
    [
        ("claim", None, ["crashed", "completed"], ["charged", "completed"]),
        ("effect", "charge", ["crashed", "completed"], ["charged", "completed"]),
        ("effect", None, ["crashed", "completed"], ["charged", "completed"]),
        ("complete", None, ["completed"], ["charged", "completed"]),
        ("handler", None, ["completed"], ["charged", "completed"]),
    ],
)
def test_crash_after(point, name, attempts, seen):
    happened = []
    charging(happened)
    enqueue("charges")
    with crash_after(point, name):
        run_jobs()
        with freeze() as clock:
            clock.advance(3600)
            run_jobs()
    assert happened == seen
    assert list(JobAttempt.objects.values_list("outcome", flat=True)) == attempts
    assert JobEffect.objects.count() == 2
    assert Job.objects.get().status == "done"


def test_crash_after_says_when_it_was_not_reached():
    with pytest.raises(AssertionError, match="effect"), crash_after("effect"):
        run_jobs()
    with pytest.raises(ValueError, match="point"), crash_after("lunch"):
        pass
    assert issubclass(SimulatedCrash, BaseException)
    assert not issubclass(SimulatedCrash, Exception)
