"""Jobs that nobody will take, transactions that stay open, connections that run out."""

from __future__ import annotations

import time

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.inspection import jobs
from django_leasequeue.core.presence import Presence, announce, depart
from django_leasequeue.doctor import capacity, snapshots, standing, upkeep
from tests.core.arrange import expire, run, running, shift, write
from tests.doctor.asking import ids, only
from tests.waiting import wait_until

SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.mark.leaves_reserved
def test_sound_jobs(connection, case):
    enqueue("arranged", delay=60)
    _held, just_now = running(connection, 2)
    expire(connection, just_now.job_id)
    sound = case()
    for diagnosis in (
        standing.unknown_statuses,
        standing.expired_leases,
        standing.no_deadlines,
        snapshots.old_transactions,
        capacity.connections_left,
        upkeep.vacuum,
        upkeep.dead_rows,
    ):
        assert list(diagnosis(sound)) == [], diagnosis


def test_a_status_that_does_not_exist(connection, case):
    write(connection, enqueue("arranged").id, status="queued")
    write(connection, enqueue("arranged").id, status="zombie")
    write(connection, enqueue("arranged").id, status="")
    enqueue("arranged")
    found = only(standing.unknown_statuses, case())
    assert ids([found]) == ["W015"]
    assert found.what.endswith(": '', 'queued', 'zombie'.")


@pytest.mark.leaves_reserved
def test_leases_that_nobody_recovers(connection, case, monkeypatch):
    for one in running(connection, 3):
        shift(connection, one.job_id, "lease_until", -61)
    found = only(standing.expired_leases, case())
    assert (ids([found]), found.what[:2]) == (["W016"], "3 ")
    monkeypatch.setattr(jobs, "MOST", 2)
    assert only(standing.expired_leases, case()).what.startswith("2 or more ")


@pytest.mark.leaves_reserved
def test_a_lease_without_an_end(connection, case):
    (job,) = running(connection)
    write(connection, job.job_id, lease_until=None)
    assert ids(standing.no_deadlines(case())) == ["W017"]


@SERVERS
def test_an_old_transaction(connection, case, second_connection, monkeypatch):
    monkeypatch.setattr(snapshots, "OLD_AFTER", 0.0)
    enqueue("arranged")
    other = second_connection()
    other.set_autocommit(False)
    try:
        run(other, "UPDATE leasequeue_job SET priority = 1")
        there = case()

        def seen():
            # InnoDB keeps what it told of its transactions until nobody has asked for 0.1 s.
            time.sleep(0.15)
            return list(snapshots.old_transactions(there))

        wait_until(seen, message="not seen")
        found = only(snapshots.old_transactions, there)
        assert ids([found]) == ["W014"]
        assert "session " in found.what
    finally:
        other.rollback()
        other.set_autocommit(True)


def test_connections(connection, case):
    there = case()
    vars(there.server)["connection_limit"] = lambda *asked: (10, "max_connections")
    try:
        assert list(capacity.connections_left(there)) == []
        row = announce(connection, Presence("w", "host", 1, "0", ("*",), 7))
        found = only(capacity.connections_left, there)
        assert ids([found]) == ["W019"]
        assert "need up to 9" in found.what
        depart(connection, row, "w")
        assert list(capacity.connections_left(there)) == []
    finally:
        del vars(there.server)["connection_limit"]


@SERVERS
def test_the_limit_of_connections(case, db_kind):
    there = case()
    limit = there.server.connection_limit(there.connection, there.variables)
    assert limit
    assert limit[0] > 0
    if db_kind != "postgres":
        few = {**there.variables, "max_user_connections": "3"}
        expected = (3, "max_user_connections")
        assert there.server.connection_limit(there.connection, few) == expected


@pytest.mark.only_on("postgres")
def test_autovacuum_switched_off(case, changed):
    changed(
        "ALTER TABLE leasequeue_job SET (autovacuum_enabled = false)",
        "ALTER TABLE leasequeue_job RESET (autovacuum_enabled)",
    )
    found = only(upkeep.vacuum, case())
    assert (ids([found]), found.what) == (["W020"], "Autovacuum is off for leasequeue_job.")


@pytest.mark.only_on("postgres")
def test_dead_rows(case, monkeypatch):
    monkeypatch.setattr(upkeep, "_MANY", -1)
    monkeypatch.setattr(upkeep, "_TIMES", -1)
    assert ids(upkeep.dead_rows(case())) == ["W021"]


def test_durability(case, db_kind):
    sound, weak = {
        "sqlite": ({"synchronous": "2"}, {"synchronous": "0"}),
        "postgres": (
            {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"},
            {"fsync": "off"},
        ),
    }.get(
        db_kind,
        (
            {"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "0"},
            {"innodb_flush_log_at_trx_commit": "2"},
        ),
    )
    there = case()
    vars(there)["variables"] = {**there.variables, **sound, "log_bin": "OFF"}
    assert list(upkeep.durability(there)) == []
    vars(there)["variables"] = {**there.variables, **weak}
    assert ids(upkeep.durability(there)) == ["I006"]
