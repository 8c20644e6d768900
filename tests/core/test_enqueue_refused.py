"""Whatever cannot be queued is an EnqueueError on every database, and nothing is written."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from django_leasequeue import EnqueueError, enqueue, enqueue_many
from django_leasequeue.models import Job
from tests.core.reports import make_report, reports
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")

OPTIONS = [
    {"queue": ""},
    {"queue": "q" * 65},
    {"queue": "q\0"},
    {"queue": "\ud800"},
    {"queue": 5},
    {"key": ""},
    {"key": 5},
    {"key": b"k"},
    {"key": "\ud800"},
    {"key": "k", "key_until": "done"},
    {"key": "k", "on_conflict": "ignore"},
    {"priority": 101},
    {"priority": -101},
    {"priority": 1.5},
    {"priority": True},
    {"priority": "1"},
    {"max_attempts": 0},
    {"max_attempts": -1},
    {"max_attempts": 32_768},
    {"max_attempts": True},
    {"max_attempts": 2.0},
    {"delay": -1},
    {"delay": math.nan},
    {"delay": "5"},
    {"delay": True},
    {"delay": timedelta(seconds=-1)},
    {"run_after": "2042-01-01"},
    {"run_after": 5},
    {"run_after": datetime.min.replace(tzinfo=UTC)},
    {"run_after": datetime.max.replace(tzinfo=UTC)},
    {"run_after": datetime(1970, 1, 1, tzinfo=UTC)},
    {"expires": -1},
    {"expires": "soon"},
    {"expires": datetime.max.replace(tzinfo=UTC)},
    {"timeout": 0},
    {"timeout": -1},
    {"timeout": math.nan},
    {"timeout": "5"},
]
PAYLOADS = [
    {"v": math.nan},
    {"v": math.inf},
    {"v": 2**63},
    {"v": "\0"},
    {"v": "\ud800"},
    {"\0": 1},
    {1: 1},
    {"v": (1,)},
    {"v": {1}},
    {"v": b""},
    {"v": object()},
    [1],
    "text",
    5,
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_an_option_that_makes_no_sense(connection, options):
    with count_statements(connection) as statements, pytest.raises(EnqueueError):
        enqueue("t", {}, **options)
    with count_statements(connection) as more, pytest.raises(EnqueueError):
        enqueue_many([("t", {}, {}), ("t", {}, options)])
    assert statements == more == []


@pytest.mark.parametrize("job_type", ["", "t" * 256, "t\0", "\ud800", None, 5, len])
def test_a_job_type_that_makes_no_sense(connection, job_type):
    with count_statements(connection) as statements, pytest.raises(EnqueueError):
        enqueue(job_type)
    assert statements == []


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda value: ascii(value)[:20])
def test_a_payload_that_some_server_would_refuse(connection, payload):
    """Case C8: it is about the payload, and not "already enqueued"."""
    with count_statements(connection) as statements, pytest.raises(EnqueueError, match="payload"):
        enqueue("t", payload, key="k")
    assert statements == []
    assert enqueue("t", key="k").created


def test_delay_and_run_after_exclude_each_other():
    with pytest.raises(TypeError, match="not both"):
        enqueue("t", delay=1, run_after=datetime(2042, 1, 1, tzinfo=UTC))


def test_an_unknown_option():
    with pytest.raises(TypeError, match="prio"):
        enqueue("t", {}, prio=1)  # type: ignore[call-arg]


def test_an_unknown_alias():
    with pytest.raises(Exception, match="nowhere"):
        enqueue("t", using="nowhere")


@pytest.mark.parametrize("size", [2_000_000, 70_000_000])
def test_a_payload_over_the_limit_leaves_the_connection_alone(size):
    """Case D7: a server would drop the connection, and the caller's transaction with it."""
    with transaction.atomic():
        make_report("before")
        with pytest.raises(EnqueueError, match="bytes of JSON, above the limit of 1048576"):
            enqueue("t", {"v": "x" * size})
        make_report("after")
        enqueue("t")
    assert reports() == ["after", "before"]
    assert Job.objects.count() == 1


def test_a_refusal_inside_a_transaction_breaks_nothing():
    with transaction.atomic():
        make_report("before")
        for payload in PAYLOADS:
            with pytest.raises(EnqueueError):
                enqueue("t", payload)
        make_report("after")
    assert reports() == ["after", "before"]


def test_many_refuses_all_when_it_refuses_one():
    with pytest.raises(EnqueueError):
        enqueue_many([("t", {}, {}), ("t", {"v": math.nan}, {})])
    with pytest.raises(EnqueueError, match="one job at a time"):
        enqueue_many([("t", {}, {"key": "k", "on_conflict": "replace"})])
    with pytest.raises(EnqueueError, match="batch_size"):
        enqueue_many([("t", {}, {})], batch_size=0)
    assert not Job.objects.exists()
