"""A router that sends reads to a replica: the queue asks the database that it writes to, always."""

from __future__ import annotations

import os
import signal

import pytest
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.test import override_settings
from django.utils.connection import ConnectionDoesNotExist

from django_leasequeue import (
    Fixed,
    cancel,
    enqueue,
    enqueue_many,
    pause,
    requeue,
    reschedule,
    resume,
)
from django_leasequeue.core.bulk import cancel_many, requeue_many
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.gauges import read_gauges
from django_leasequeue.core.prune import prune
from django_leasequeue.models import Job
from django_leasequeue.runtime.soundness import database_problem
from reports.models import GeneratedReport
from tests.cli.conftest import leasequeue
from tests.core.arrange import expire, outcomes, running
from tests.core.reports import make_report
from tests.field.workers import drain
from tests.waiting import wait_until

__all__ = ["leasequeue"]

REPLICA = "replica"
SETTINGS = f"""
from tests.process.settings import *

DATABASE_ROUTERS = ["{__name__}.Router"]
SILENCED_SYSTEM_CHECKS = ["leasequeue.W003"]
"""


class Router:
    """As lagging as can be: there is no such database, so no read of it goes unseen."""

    def db_for_read(self, model, **hints):
        return REPLICA

    def db_for_write(self, model, **hints):
        return "default"


@pytest.fixture
def routed(queue_db, settings):
    settings.DATABASE_ROUTERS = [f"{__name__}.Router"]
    with pytest.raises(ConnectionDoesNotExist):
        Job.objects.count()
    return queue_db


def test_claim_fence_settlement_recovery_and_drain(routed, declare, short_leases):
    """B22, G9: a whole life of jobs, by a worker that drains."""

    @declare("replica.effect", takes_context=True, backoff=Fixed(0))
    def effect(context):
        context.checkpoint({"attempt": context.attempt})
        if context.attempt == 1:
            raise ValueError
        with context.complete({"attempt": context.attempt}):
            make_report(f"job-{context.job_id}")

    buried = []
    hook = lambda context, error: buried.append(context.job_id)  # noqa: E731
    declare("replica.fails", failed=hook)(lambda: 1 / 0)
    declare("arranged")(lambda n: None)
    (lost,) = running(routed)
    expire(routed, lost.job_id)
    ids = [enqueue("replica.effect").id for _ in range(3)]
    dead = enqueue("replica.fails", max_attempts=1).id
    drain(lease=short_leases)
    with override_settings(DATABASE_ROUTERS=[]):  # for what the test itself reads
        assert [outcomes(one) for one in ids] == [["failed", "completed"]] * 3
        assert outcomes(lost.job_id) == ["expired", "completed"]
        assert (outcomes(dead), buried) == (["failed"], [dead])
        assert GeneratedReport.objects.using("default").count() == 3


def test_what_producers_and_operators_are_answered(routed):
    """G9: the answer right after a write is the write's."""
    first, second = (enqueue("replica.none", key="a") for _ in range(2))
    assert (first.created, second.created, second.id) == (True, False, first.id)
    replaced = enqueue("replica.none", {"n": 1}, key="a", on_conflict="replace")
    assert replaced.id == first.id
    many = enqueue_many([("replica.none", {}, {"key": key}) for key in "ab"])
    assert [one.created for one in many] == [False, True]
    with transaction.atomic():
        assert enqueue("replica.none", key="b").id == many[1].id
    assert cancel(first.id) == [first.id]
    assert requeue(first.id) == [first.id]
    assert reschedule(first.id) == [first.id]
    pause("default")
    resume("default")


def test_what_the_command_line_asks_and_does(routed, leasequeue):
    """G9: every sub-command that reads or writes jobs."""
    job, other = (enqueue("replica.none", {"n": n}).id for n in (1, 2))
    for arguments in (
        ("status",),
        ("jobs",),
        ("jobs", job),
        ("schedules",),
        ("health", "--max-oldest", "3600"),
        ("recover",),
        ("pause", "default"),
        ("resume", "default"),
        ("cancel", job),
        ("requeue", job),
        ("cancel", job),
        ("prune", "--older-than", "0"),
    ):
        ended = leasequeue(*arguments)
        assert ended.code == 0, (arguments, ended)
    with override_settings(DATABASE_ROUTERS=[]):
        assert list(Job.objects.values_list("pk", flat=True)) == [other]


def test_what_doctor_says_of_it(routed, leasequeue):
    """It looks at the queue's database, and tells of the router."""
    told = {found["id"] for found in leasequeue("doctor", "--json").document["findings"]}
    assert "leasequeue.W003" in told
    assert "leasequeue.I007" not in told or connections[DEFAULT_DB_ALIAS].vendor != "sqlite"


def test_many_at_once(routed):
    """G9: bulk runs and prune, from Python."""
    ids = [enqueue("replica.none").id for _ in range(3)]
    assert cancel_many(JobFilter(statuses=("ready",))).changed == 3
    assert requeue_many(JobFilter(statuses=("cancelled",))).changed == 3
    assert cancel(ids) == ids
    assert prune(older_than=0).jobs == 3


def test_gauges_and_health(routed):
    enqueue("replica.none")
    (queue,) = read_gauges(routed).queues
    assert queue.ready == 1
    assert database_problem(DEFAULT_DB_ALIAS, max_oldest=3600) == ""


def test_children(queue_db, worker_process, process_environment, tmp_path):
    """G9: the same for handlers and hooks in a child."""
    (tmp_path / "routed_settings.py").write_text(SETTINGS)
    path = os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]])
    ids = [enqueue("outages.effect").id for _ in range(3)]
    dead = enqueue("proc.fail", max_attempts=1).id
    worker = worker_process(env={"DJANGO_SETTINGS_MODULE": "routed_settings", "PYTHONPATH": path})
    worker.wait_event("job_dead", job_id=dead)
    wait_until(lambda: GeneratedReport.objects.count() == 4, message=worker.log())
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []
    assert [outcomes(one) for one in ids] == [["completed"]] * 3
