"""A source (S2's puller): what it returns is enqueued and run by the worker that asked for it."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_leasequeue import Worker
from django_leasequeue.models import Job
from tests.faults import Fault, Rival, broken, watching
from tests.field.workers import QUICK, drain

OPTIONS = {**QUICK, "drain": True}


@pytest.fixture(autouse=True)
def kinds(queue_db, declare):
    ran = []
    declare("src.run", max_attempts=2)(lambda n: ran.append(n))  # noqa: PLW0108  (a method of list has no signature)
    return ran


class Source:
    """Returns its items one by one, then None; an exception among them is raised."""

    def __init__(self, *items):
        self.items = list(items)
        self.asked = 0

    def __call__(self):
        self.asked += 1
        item = self.items.pop(0) if self.items else None
        if isinstance(item, Exception):
            raise item
        return item


def run(worker):
    def work():
        try:
            return worker.run()
        finally:
            connections.close_all()

    return Rival(work).result()


def item(n, *options):
    return ("src.run", {"n": n}, *options)


def test_items_are_enqueued_and_run(kinds):
    source = Source(item(1), item(2), item(3, {"priority": 5, "key": "three"}))
    drain(source=source)
    assert kinds == [1, 2, 3]
    assert set(Job.objects.values_list("status", "attempts")) == {("done", 1)}
    assert Job.objects.get(priority=5)
    assert not source.items


def test_none_means_nothing_now(kinds):
    """A drain ends then; a worker that does not drain asks again."""
    drain(source=Source(item(1), None, item(2)))
    assert kinds == [1]
    source = Source(None, None, item(3))
    worker = Worker(source=source, max_jobs=1, **QUICK)
    assert run(worker) == 0
    assert kinds == [1, 3] and source.asked == 3


@pytest.mark.parametrize("options", [{"delay": 3600}, {"queue": "elsewhere"}])
def test_an_item_for_later_or_for_others_does_not_end_the_drain(kinds, options):
    drain(queues="default", source=Source(item(1, options), item(2, options), item(3)))
    assert kinds == [3]
    assert Job.objects.filter(status="ready", attempts=0).count() == 2


def test_the_limit_of_jobs_is_the_sources_too(kinds):
    """What the worker would not run it does not take from the source either."""
    source = Source(item(1), item(2), item(3))
    assert run(Worker(source=source, max_jobs=2, **OPTIONS)) == 0
    assert kinds == [1, 2] and len(source.items) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        ("src.run", {"n": object()}),
        ("src.run", {"n": 1}, {"priority": 1000}),
        ("src.run",),
        ("src.run", {"n": 1}, "urgent"),
        "src.run",
        7,
    ],
)
def test_what_cannot_be_enqueued_is_fatal(kinds, wrong):
    """What was enqueued before it has run, and the source is not asked on."""
    source = Source(item(1), wrong, item(2))
    with watching() as seen:
        assert run(Worker(source=source, **OPTIONS)) == 1
    assert seen.named("worker_fatal")[0]["error"] == "EnqueueError"
    assert (kinds, source.asked) == ([1], 2)
    assert not Job.objects.exclude(status="done").exists()


def test_an_error_of_the_source_is_fatal(kinds):
    with watching() as seen:
        assert run(Worker(source=Source(item(1), LookupError()), **OPTIONS)) == 1
    assert seen.named("worker_fatal")[0]["error"] == "LookupError"
    assert kinds == [1]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_an_item_is_not_lost_in_an_outage(kinds, db_kind):
    lost = "57P01" if db_kind == "postgres" else 2006
    source = Source(item(1), item(2))

    def work():
        fault = Fault(lost, at=2, times=7, match=lambda sql: "INTO leasequeue_job " in sql)
        with broken(connections["default"], fault):
            ended = Worker(source=source, **OPTIONS).run()
        connections.close_all()
        return ended, fault.fired

    with watching() as seen:
        assert Rival(work).result() == (0, 7)
    assert seen.named("database_lost") and seen.named("database_back")
    assert kinds == [1, 2]
    assert Job.objects.count() == 2


def test_it_is_refused_with_children():
    with pytest.raises(ImproperlyConfigured, match="solo=True"):
        Worker(source=lambda: None)
