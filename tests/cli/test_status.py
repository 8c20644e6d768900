"""`leasequeue status`: counts, ages, pauses, workers, what needs a human; bounded and reading."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models import JSONField, Value

from django_leasequeue import cancel, enqueue, enqueue_many, pause
from django_leasequeue.cli import overview
from django_leasequeue.core import gauges
from django_leasequeue.core.clock import read_now
from django_leasequeue.models import Job, Worker
from tests.core.arrange import claim_one
from tests.statements import count_statements

EMPTY = {"ready": 0, "scheduled": 0, "reserved": 0, "parked": 0, "dead": 0}


def seen(connection, name, *, ago=0.0, **columns):
    moment = read_now(connection) - timedelta(seconds=ago)
    return Worker.objects.create(name=name, seen_at=moment, queues=["a", "*"], **columns)


def test_an_empty_database(queue_db, leasequeue):
    ended = leasequeue("status")
    assert (ended.code, ended.err) == (0, "")
    assert "no jobs" in ended.lines
    assert "no worker is running, and none has vanished within a day" in ended.lines
    document = leasequeue("status", "--json").document
    assert document["database"] == "default"
    assert (document["queues"], document["workers"], document["needs"]) == ([], [], [])
    assert leasequeue("status", "--check").code == 0


def test_each_count_is_in_its_column(queue_db, connection, leasequeue):
    ids = [enqueue("arranged", {"n": n}, queue="mail").id for n in range(7)]
    enqueue("arranged", queue="mail", delay=3600, priority=5)
    Job.objects.filter(pk__in=ids[:2]).update(status="dead")
    Job.objects.filter(pk__in=ids[2:3]).update(status="parked")
    claim_one(connection, queues="mail")
    Job.objects.filter(pk=ids[-1]).update(
        available_at=read_now(connection) - timedelta(seconds=7200)
    )
    (queue,) = leasequeue("status", "--json").document["queues"]
    oldest = queue.pop("oldest_ready_seconds")
    assert 7200 <= oldest < 7300
    assert queue == {
        "name": "mail",
        **EMPTY,
        "ready": 3,
        "scheduled": 1,
        "reserved": 1,
        "parked": 1,
        "dead": 2,
        "paused": None,
    }
    lines = leasequeue("status").lines
    titles = ["queue", "ready", "oldest", "scheduled", "reserved", "parked", "dead", "paused"]
    assert titles in [line.split() for line in lines]
    assert ["mail", "3", "2h", "1", "1", "1", "2", "-"] in [line.split() for line in lines]
    cancel(Job.objects.filter(status="reserved"))


def test_counts_end_at_the_limit(queue_db, leasequeue, monkeypatch):
    monkeypatch.setattr(gauges, "CAP", 3)
    monkeypatch.setattr(overview, "CAP", 3)
    enqueue_many([("arranged", {"n": n}, {}) for n in range(5)])
    assert ["default", "3+"] in [line.split()[:2] for line in leasequeue("status").lines]
    document = leasequeue("status", "--json").document
    assert (document["queues"][0]["ready"], document["count_limit"]) == (3, 3)


def test_paused_queues_say_who_and_why(queue_db, leasequeue):
    enqueue("arranged", queue="mail")
    pause("mail", by="ada", reason="no\x1b[31m server")
    pause("idle")
    ended = leasequeue("status", "--check")
    assert ended.code == 1
    (mail,) = [line for line in ended.lines if line.startswith("mail")]
    assert mail.endswith(r" by ada: no\x1b[31m server")
    document = leasequeue("status", "--json").document
    assert {queue["name"]: queue["ready"] for queue in document["queues"]} == {"mail": 1, "idle": 0}
    assert document["queues"][1]["paused"]["by"] == "ada"
    assert document["needs"] == [
        "2 paused queues: resume them when their reason is gone",
    ]


def test_workers_of_the_last_day(queue_db, connection, leasequeue):
    seen(connection, "late", ago=3600, children=2)
    seen(connection, "gone", ago=25 * 3600)
    seen(connection, "stopped", stopped_at=read_now(connection))
    seen(connection, "here", current_jobs=[{"id": 1, "type": "t", "since": "2042-01-01"}])
    document = leasequeue("status", "--json").document
    assert [worker["name"] for worker in document["workers"]] == ["here", "late"]
    assert 3600 <= document["workers"][1]["seen_seconds_ago"] < 3700
    rows = [line.split() for line in leasequeue("status").lines]
    assert ["late", "60m", "ago", "2", "0", "a,*"] in rows


@pytest.mark.parametrize("value", [5, {"a": 1}, "text", [None, 5], None])
def test_a_worker_row_that_plain_sql_wrote(queue_db, connection, leasequeue, value):
    seen(connection, "here\x1b[2J")
    value = Value(value, JSONField()) if value is None else value
    Worker.objects.update(queues=value, current_jobs=value)
    ended = leasequeue("status")
    assert (ended.code, ended.out.count("\x1b")) == (0, 0)
    assert leasequeue("status", "--json").code == 0


def test_what_needs_a_human(queue_db, connection, leasequeue):
    ids = [enqueue("arranged", {"n": n}).id for n in range(3)]
    Job.objects.filter(pk=ids[0]).update(status="dead", lease_until=read_now(connection))
    Job.objects.filter(pk=ids[1]).update(status="parked")
    document = leasequeue("status", "--json").document
    assert document["pending_burials"] == 1
    needs = document["needs"]
    assert [need.split(":")[0] for need in needs] == [
        "1 dead letters",
        "1 parked jobs",
        "due jobs, and no worker was seen within a minute",
    ]
    seen(connection, "here")
    assert leasequeue("status", "--json").document["needs"] == needs[:2]
    assert leasequeue("status").code == 0
    assert leasequeue("status", "--check").code == 1


def test_300_queues(queue_db, leasequeue):
    enqueue_many([("arranged", {}, {"queue": f"q{n:03}"}) for n in range(300)])
    document = leasequeue("status", "--json").document
    assert [queue["name"] for queue in document["queues"]] == [f"q{n:03}" for n in range(300)]
    assert not document["more_queues"]
    document = leasequeue("status", "--json", "--queues", 7).document
    assert (len(document["queues"]), document["more_queues"]) == (7, True)
    assert "more queues are not shown: --queues" in leasequeue("status", "--queues", 7).lines


def test_it_reads_with_as_many_statements_whatever_the_rows(queue_db, connection, leasequeue):
    counts = []
    for rows in (1, 300):
        enqueue_many([("arranged", {"n": n}, {}) for n in range(rows)])
        with count_statements(connection) as statements:
            leasequeue("status")
        assert all(sql.split("*/")[-1].split()[0] == "SELECT" for sql in statements), statements
        counts.append(len(statements))
    assert counts[0] == counts[1] < 15


def test_a_watch_goes_on_while_the_database_is_away(queue_db, leasequeue, monkeypatch):
    looks = []

    def look(alias, most):
        looks.append(alias)
        if len(looks) == 2:
            raise OperationalError("away")
        if len(looks) == 4:
            raise KeyboardInterrupt
        return read(alias, most)

    read = overview.read_overview
    monkeypatch.setattr("django_leasequeue.cli.status.read_overview", look)
    with pytest.raises(KeyboardInterrupt):
        leasequeue("status", "--watch", "0.1")
    assert len(looks) == 4


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "soon"])
def test_a_wrong_pace_of_a_watch(queue_db, leasequeue, value):
    ended = leasequeue("status", f"--watch={value}")
    assert "--watch" in ended.err and ended.out == ""
