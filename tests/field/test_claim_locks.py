"""A claim locks what it takes and nothing else, whatever the others have locked already."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs, expire, job, outcomes, running
from tests.core.interleave import at_statement
from tests.faults import Rival
from tests.statements import count_statements

SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")
QUEUES = ("a", "b")
PRIORITIES = (5, 0, -5)
#: Sooner than anybody waits; MySQL counts in whole seconds.
IMPATIENT = {
    "mysql": "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
    "postgresql": "SET lock_timeout = 500",
}


@pytest.fixture(params=["read", "repeatable"])
def impatient(request, session) -> Callable[[], BaseDatabaseWrapper]:
    """A factory of sessions that give up on a lock at once, in either isolation level."""

    def connect() -> BaseDatabaseWrapper:
        connection = session(request.param)
        with connection.cursor() as cursor:
            cursor.execute(IMPATIENT[connection.vendor])
        return connection

    return connect


def seed(connection: BaseDatabaseWrapper) -> None:
    """200 ready jobs over two queues and three priorities, and 20 expired leases."""
    expire(connection, *(held.job_id for held in running(connection, 20, queue="a")))
    enqueue_many(
        ("t", {"n": n}, {"queue": QUEUES[n % 2], "priority": PRIORITIES[n % 3]}) for n in range(200)
    )


@SERVERS
@pytest.mark.leaves_reserved
@pytest.mark.parametrize("limit", [1, 10])
@pytest.mark.parametrize("queues", ["a", "a,b", "*"])
def test_three_uncommitted_claims_take_different_jobs(
    connection, impatient, as_default, queues, limit
):
    """A1, A2, A10: and a web request can enqueue at once, in either isolation level."""
    seed(connection)
    taken: list[int] = []
    sessions = [impatient() for _ in range(3)]
    web = impatient()

    def take(rest: list[BaseDatabaseWrapper]) -> None:
        if not rest:
            with as_default(web), transaction.atomic():
                for queue in QUEUES:
                    for priority in PRIORITIES:
                        enqueue("t", {}, queue=queue, priority=priority)
            recover_batch(web)
            return
        others = partial(take, rest[1:])
        with at_statement(rest[0], "leasequeue:claim", others, nth=2, after=True) as hit:
            taken.extend(each.job_id for each in claim_jobs(rest[0], limit, queues=queues))
        assert "SET status = 'reserved'" in hit[0]

    take(sessions)
    assert len(taken) == len(set(taken)) == 3 * limit
    assert {job(job_id).priority for job_id in taken} == {5}


@pytest.mark.leaves_reserved
def test_a_claim_is_one_transaction_on_the_queues_own_session(connection, second_connection):
    """A17: the lock is still held at the UPDATE. A15: no server is asked for `FOR UPDATE OF`."""
    enqueue("t")
    control = second_connection()
    with count_statements(connection) as elsewhere, count_statements(control) as statements:
        claim_jobs(control)
    assert elsewhere == []
    begin = next(n for n, sql in enumerate(statements) if sql.startswith(("BEGIN", "START")))
    inside = statements[begin + 1 : statements.index("COMMIT")]
    words = [re.sub(r"/\*.*?\*/ ", "", sql).split()[0] for sql in inside]
    assert words == ["SELECT", "UPDATE"]
    if control.vendor != "sqlite":  # whose BEGIN IMMEDIATE is the lock
        assert inside[0].endswith("FOR UPDATE SKIP LOCKED")
    assert not [sql for sql in statements if re.search(r"FOR UPDATE\s+OF\b", sql)]


@pytest.mark.usefixtures("connection")
def test_every_index_of_a_job_is_ascending():
    """A3: MariaDB before 10.8 takes DESC and ignores it. The plans themselves: test_plans.py."""
    fields = [name for index in Job._meta.indexes for name, _order in index.fields_orders]
    orders = [order for index in Job._meta.indexes for _name, order in index.fields_orders]
    assert fields
    assert set(orders) == {""}


def test_three_recoveries_at_the_same_tick(connection, session):
    """A9: 50 leases with one deadline among 60 rows: each is recovered once, nobody deadlocks."""
    jobs = running(connection, 60)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE leasequeue_job SET lease_until = '2020-01-01 00:00:00.000000' WHERE id <= %s",
            [sorted(each.job_id for each in jobs)[49]],
        )

    def recover(mine: BaseDatabaseWrapper) -> list[Any]:
        return [each for _pass in range(10) for each in recover_batch(mine, 10)]

    rivals = [Rival(partial(recover, session())) for _ in range(3)]
    recovered = [each.job_id for rival in rivals for each in rival.result()]
    assert len(recovered) == len(set(recovered)) == 50
    assert {tuple(outcomes(job_id)) for job_id in recovered} == {("expired",)}
    assert {(job(i).status, job(i).crashes) for i in recovered} == {("ready", 1)}
    expire(connection, *({each.job_id for each in jobs} - set(recovered)))
    assert len(recover_batch(connection)) == 10
    assert connections["default"] is connection
