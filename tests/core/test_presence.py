"""Presence: every running worker has a row, rows are used again, and none decides anything."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import DatabaseError, IntegrityError

from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.presence import (
    CurrentJob,
    Presence,
    announce,
    depart,
    drain_requested,
    refresh,
    request_drain,
)
from django_leasequeue.models import Worker
from django_leasequeue.runtime import notices
from django_leasequeue.runtime.presence import Attendance
from tests.core.arrange import run
from tests.core.interleave import at_statement
from tests.faults import Rival
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")

DAY = 24 * 3600
SINCE = datetime(2042, 1, 2, 4, 4, 5, tzinfo=timezone(timedelta(hours=1)))
BUSY = (CurrentJob(7, "report.generate", SINCE), CurrentJob(2**40, "é😀", SINCE))


def worker(name: str = "mail:host:1:aa") -> Presence:
    return Presence(name, "host", 1, "0.2", ("mail", "reports"), 4)


def rows() -> list[Worker]:
    return list(Worker.objects.order_by("pk"))


def row(row_id: int) -> Worker:
    return Worker.objects.get(pk=row_id)


def unseen(connection, row_id: int, seconds: float) -> None:
    """Let a worker have been seen last so long ago."""
    dialect = dialect_for(connection)
    run(
        connection,
        f"UPDATE leasequeue_worker SET seen_at = {dialect.later} WHERE id = %s",
        [dialect.span(-seconds), row_id],
    )


def test_what_is_announced(connection):
    row_id = announce(connection, replace(worker(), jobs=BUSY))
    (found,) = rows()
    assert (found.pk, found.name, found.host, found.pid) == (row_id, "mail:host:1:aa", "host", 1)
    assert (found.version, found.queues, found.children) == ("0.2", ["mail", "reports"], 4)
    assert found.current_jobs == [
        {"id": 7, "type": "report.generate", "since": "2042-01-02T03:04:05+00:00"},
        {"id": 2**40, "type": "é😀", "since": "2042-01-02T03:04:05+00:00"},
    ]
    assert abs((found.seen_at - datetime.now(UTC)).total_seconds()) < 5
    assert abs((found.seen_at - found.started_at).total_seconds()) < 0.1
    assert (found.stopped_at, found.drain_requested_at) == (None, None)


def test_what_is_refreshed(connection):
    row_id = announce(connection, worker())
    unseen(connection, row_id, 100)
    before = row(row_id)
    changed = replace(worker(), jobs=BUSY[:1], children=2, version="0.3", queues=("*",))
    with count_statements(connection) as statements:
        assert refresh(connection, row_id, changed) is True
    assert len(statements) == 1
    after = row(row_id)
    assert (after.children, after.version, after.queues) == (2, "0.3", ["*"])
    assert [job["id"] for job in after.current_jobs] == [7]
    assert (after.seen_at - before.seen_at).total_seconds() == pytest.approx(100, abs=5)
    assert (after.name, after.started_at) == (before.name, before.started_at)


def test_nothing_new_is_a_refresh_too(connection):
    """The server counts rows that it found, not rows that it changed."""
    row_id = announce(connection, worker())
    assert [refresh(connection, row_id, worker()) for _ in range(3)] == [True] * 3


def test_a_departure(connection):
    row_id = announce(connection, replace(worker(), jobs=BUSY))
    depart(connection, row_id, worker().name)
    found = row(row_id)
    assert (found.current_jobs, found.children) == ([], 0)
    assert found.stopped_at is not None
    assert abs((found.stopped_at - found.seen_at).total_seconds()) < 0.1
    depart(connection, row_id, worker().name)
    assert row(row_id) == found
    assert row(row_id).stopped_at == found.stopped_at


def test_a_late_refresh_undoes_no_departure(connection):
    row_id = announce(connection, worker())
    depart(connection, row_id, worker().name)
    refresh(connection, row_id, worker())
    assert row(row_id).stopped_at is not None


def test_a_drain_is_asked_for_once(connection):
    row_id, name = announce(connection, worker()), worker().name
    assert drain_requested(connection, row_id, name) is False
    assert request_drain(connection, row_id, "another:host:2:bb") is False
    assert drain_requested(connection, row_id, name) is False
    assert [request_drain(connection, row_id, name) for _ in range(2)] == [True, False]
    refresh(connection, row_id, worker())  # which leaves the wish alone
    assert drain_requested(connection, row_id, name) is True
    assert drain_requested(connection, row_id, "another:host:2:bb") is False


def test_who_stopped_or_starts_anew_is_not_asked(connection):
    row_id, name = announce(connection, worker()), worker().name
    request_drain(connection, row_id, name)
    depart(connection, row_id, name)
    assert request_drain(connection, row_id, name) is False
    heir = worker("new:host:2:bb")
    assert announce(connection, heir) == row_id
    assert drain_requested(connection, row_id, heir.name) is False


def test_a_worker_hears_of_it_with_its_next_refresh(connection):
    heard: list[str] = []
    attended = Attendance(worker, lambda: heard.append("drain"))
    with moved_clock() as later:
        attended.show(connection)
        (found,) = rows()
        assert request_drain(connection, found.pk, found.name)
        attended.show(connection)  # it is not time
        assert heard == []
        for _ in range(2):
            later()
            attended.show(connection)
    assert heard == ["drain"]


@contextmanager
def moved_clock():
    """Yield a function that lets the next refresh be due."""
    now = [1000.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notices, "ticks", lambda: now[0])
        yield lambda: now.__setitem__(0, now[0] + 6)


@pytest.mark.parametrize("way", ["stopped", "unseen"])
def test_the_row_of_a_worker_that_is_gone_is_taken_over(connection, way):
    row_id = announce(connection, replace(worker(), jobs=BUSY))
    Worker.objects.update(started_at=SINCE, drain_requested_at=SINCE)
    if way == "stopped":
        depart(connection, row_id, worker().name)
    else:
        unseen(connection, row_id, DAY + 60)
    assert announce(connection, worker("new:host:2:bb")) == row_id
    (found,) = rows()
    assert (found.name, found.current_jobs, found.children) == ("new:host:2:bb", [], 4)
    assert (found.stopped_at, found.drain_requested_at) == (None, None)
    assert abs((found.started_at - found.seen_at).total_seconds()) < 0.1
    # Whoever had it finds out, and gets a row of its own.
    assert refresh(connection, row_id, worker()) is False
    depart(connection, row_id, worker().name)
    assert row(row_id).stopped_at is None
    assert announce(connection, worker()) != row_id
    assert [each.name for each in rows()] == ["new:host:2:bb", "mail:host:1:aa"]


def test_a_worker_that_is_there_keeps_its_row(connection):
    row_id = announce(connection, worker())
    unseen(connection, row_id, DAY - 60)
    assert announce(connection, worker("new:host:2:bb")) != row_id
    assert refresh(connection, row_id, worker()) is True


def test_deployments_leave_no_rows_behind(connection):
    for release in range(5):
        names = [f"w{n}:host:{release}:aa" for n in range(3)]
        ids = {name: announce(connection, worker(name)) for name in names}
        for name, row_id in ids.items():
            depart(connection, row_id, name)
    assert len(rows()) == 3


def test_the_same_name_again(connection):
    """As after an announcement whose answer was lost: one row, also beside a free one."""
    free = announce(connection, worker("old:host:9:cc"))
    row_id = announce(connection, worker())
    depart(connection, free, "old:host:9:cc")
    assert announce(connection, worker()) == row_id
    assert len(rows()) == 2


def test_a_row_that_is_gone_is_announced_again(connection):
    row_id = announce(connection, worker())
    Worker.objects.all().delete()
    assert refresh(connection, row_id, worker()) is False
    depart(connection, row_id, worker().name)
    assert row(announce(connection, worker())).name == worker().name


@pytest.mark.parametrize("statement", ["INSERT", "UPDATE"])
def test_a_name_that_is_taken_at_that_moment(connection, statement):
    """Whether a row is taken over or inserted, a namesake in between is met, not fatal."""
    if statement == "UPDATE":
        free = announce(connection, worker("old:host:9:cc"))
        depart(connection, free, "old:host:9:cc")
    meanwhile = f"INSERT INTO leasequeue_worker (name) VALUES ('{worker().name}')"
    with at_statement(connection, f"presence .. {statement}", insert(connection, meanwhile)) as met:
        row_id = announce(connection, worker())
    assert met
    assert row(row_id).name == worker().name
    assert refresh(connection, row_id, worker()) is True


def insert(connection, sql: str):
    return lambda: run(connection, sql)


def test_of_two_that_want_one_row_one_gets_it(connection):
    free = announce(connection, worker())
    depart(connection, free, worker().name)
    with at_statement(
        connection, "presence .. UPDATE", lambda: announce(connection, worker("b:host:2:bb"))
    ) as met:
        mine = announce(connection, worker("c:host:3:cc"))
    assert met
    assert {each.name: each.pk == free for each in rows()} == {
        "b:host:2:bb": True,
        "c:host:3:cc": False,
    }
    assert mine != free


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_many_at_once(connection, session):
    stopped = [announce(connection, worker(f"old{n}:host:1:aa")) for n in range(4)]
    for n, row_id in enumerate(stopped):
        depart(connection, row_id, f"old{n}:host:1:aa")
    names = [f"new{n}:host:1:aa" for n in range(8)]
    rivals = {name: Rival(announcing(session(), name)) for name in names}
    ids = {name: rival.result() for name, rival in rivals.items()}
    assert {each.name: each.pk for each in rows()} == ids


def announcing(session, name: str):
    return lambda: announce(session, worker(name))


def test_what_does_not_fit_is_cut(connection):
    row_id = announce(connection, replace(worker(), host="h" * 300, version="v" * 70))
    assert (row(row_id).host, row(row_id).version) == ("h" * 255, "v" * 64)
    assert refresh(connection, row_id, replace(worker(), version="v" * 70)) is True


@pytest.mark.parametrize("error", [IntegrityError("no default"), DatabaseError("out of disk")])
def test_other_errors_are_the_callers(connection, error):
    def fail() -> None:
        raise error

    with at_statement(connection, "presence .. INSERT", fail), pytest.raises(type(error)):
        announce(connection, worker())
    row_id = announce(connection, worker())
    for call in (
        lambda: refresh(connection, row_id, worker()),
        lambda: depart(connection, row_id, worker().name),
    ):
        with at_statement(connection, "presence .. UPDATE", fail), pytest.raises(type(error)):
            call()


def test_nothing_is_deleted(connection):
    with count_statements(connection) as statements:
        row_id = announce(connection, worker())
        refresh(connection, row_id, worker())
        depart(connection, row_id, worker().name)
        announce(connection, worker("new:host:2:bb"))
    verbs = {sql.removeprefix("/* leasequeue:presence */ ").split()[0] for sql in statements}
    assert verbs == {"SELECT", "INSERT", "UPDATE"}
