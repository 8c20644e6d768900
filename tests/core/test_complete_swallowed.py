"""Nothing half-done is committed as a success: swallowed errors, rollbacks, DDL in the block."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest
from django.db import DatabaseError, connections, transaction

from django_leasequeue import enqueue
from django_leasequeue.core.insert import insert_one
from django_leasequeue.core.request import build_request
from django_leasequeue.core.sealing import seal
from django_leasequeue.core.settle import Ending, settle
from tests.core.arrange import job, outcomes, run, running
from tests.core.reports import make_report, reports
from tests.faults import Rival

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def default():
    return connections["default"]


def swallowed_by_the_orm(context):
    make_report("k")
    with suppress(DatabaseError):
        make_report("k")


def swallowed_raw(context):
    make_report("k")
    with suppress(DatabaseError):
        run(default(), "SELECT no_such_column FROM leasequeue_job")


def swallowed_raw_write(context):
    make_report("k")
    with suppress(DatabaseError):
        run(default(), "INSERT INTO generated_reports (id) VALUES (NULL)")


def marked_for_rollback(context):
    make_report("k")
    transaction.set_rollback(True)


def swallowed_in_a_block_without_savepoint(context):
    make_report("k")
    with suppress(ZeroDivisionError), transaction.atomic(savepoint=False):
        raise ZeroDivisionError


def rolled_back_by_hand(context):
    make_report("k")
    with default().cursor() as cursor:
        cursor.execute("ROLLBACK")


def committed_by_hand(context):
    with default().cursor() as cursor:
        cursor.execute("COMMIT")
    make_report("k")


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize(
    "work",
    [
        swallowed_by_the_orm,
        swallowed_raw,
        swallowed_raw_write,
        marked_for_rollback,
        swallowed_in_a_block_without_savepoint,
        pytest.param(rolled_back_by_hand, marks=pytest.mark.only_on("mariadb", "mysql")),
    ],
)
def test_a_failed_attempt_and_nothing_kept(connection, declare, attempt, work, atomic):
    handle(declare, work, atomic=atomic)
    (held,) = running(connection)
    outcome = attempt(held)
    assert not outcome.settled
    assert settle(connection, [Ending(held.lease, outcome)])[0].status == "ready"
    assert outcomes(held.job_id) == ["failed"]
    assert reports() == []


def handle(declare, work, *, atomic):
    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context, n):
        with nullcontext() if atomic else context.complete():
            work(context)


@pytest.mark.only_on("mariadb", "mysql")
@pytest.mark.parametrize("atomic", [False, True])
def test_a_transaction_that_was_committed_by_hand_is_no_success(
    connection, declare, attempt, atomic
):
    """What was committed cannot be taken back; but the job is not done with it."""
    handle(declare, committed_by_hand, atomic=atomic)
    (held,) = running(connection)
    outcome = attempt(held)
    assert not outcome.settled
    assert job(held.job_id).status == "reserved"


@pytest.mark.only_on("mariadb", "mysql")
@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize(
    "ddl", ["CREATE TABLE leasequeue_ddl (id int)", "TRUNCATE TABLE leasequeue_jobeffect"]
)
def test_ddl_commits_behind_djangos_back(connection, declare, attempt, ddl, atomic):
    """Case C4: the fence holds all the same, and the attempt has failed."""

    def work(context):
        run(default(), ddl)
        make_report("after")

    handle(declare, work, atomic=atomic)
    (held,) = running(connection)
    try:
        outcome = attempt(held)
    finally:
        run(connection, "DROP TABLE IF EXISTS leasequeue_ddl")
    assert not outcome.settled
    assert settle(connection, [Ending(held.lease, outcome)])[0].status == "ready"
    assert outcomes(held.job_id) == ["failed"]


@pytest.mark.only_on("mariadb", "mysql")
def test_ddl_that_does_not_commit_is_welcome(connection, declare, attempt):
    def work(context):
        run(default(), "CREATE TEMPORARY TABLE leasequeue_scratch (id int)")
        make_report("k")

    handle(declare, work, atomic=False)
    (held,) = running(connection)
    assert attempt(held).settled
    assert reports() == ["k"]


@pytest.mark.only_on("mariadb", "mysql")
@pytest.mark.parametrize("rolled_back", [True, False])
def test_a_savepoint_around_a_harmless_statement(connection, declare, attempt, rolled_back):
    """That nobody knows to be harmless: rolling back to it takes the guard's own with it."""

    def work(context):
        make_report("k")
        with suppress(ZeroDivisionError), transaction.atomic():
            run(default(), "SET @leasequeue_test = 1")
            if rolled_back:
                raise ZeroDivisionError
        run(default(), "SET @leasequeue_test = 2")

    handle(declare, work, atomic=False)
    (held,) = running(connection)
    assert attempt(held).settled
    assert reports() == ["k"]


@pytest.mark.only_on("mariadb", "mysql")
@pytest.mark.parametrize("inside", [True, False])
def test_a_commit_by_hand_beside_a_savepoint(connection, declare, attempt, inside):
    def work(context):
        make_report("before")
        with suppress(ZeroDivisionError), transaction.atomic():
            run(default(), "SET @leasequeue_test = 1")
            if inside:
                run(default(), "COMMIT")
            raise ZeroDivisionError
        run(default(), "COMMIT")
        make_report("after")

    handle(declare, work, atomic=False)
    (held,) = running(connection)
    assert not attempt(held).settled
    assert job(held.job_id).status == "reserved"
    assert reports() == ["before"]


@pytest.mark.only_on("mariadb", "mysql")
def test_a_statement_in_bytes(connection, declare, attempt):
    def work(context):
        run(default(), b"SELECT 1")
        make_report("k")

    handle(declare, work, atomic=False)
    (held,) = running(connection)
    assert attempt(held).settled
    assert reports() == ["k"]


@pytest.mark.only_on("postgres")
def test_a_composed_statement_that_fails(connection, declare, attempt):
    """The block gets the database's own error."""
    errors = []

    def work(context):
        from psycopg import sql

        try:
            run(default(), sql.SQL("SELECT {}").format(sql.Identifier("no_such_column")))
        except DatabaseError as error:
            errors.append(error)

    handle(declare, work, atomic=False)
    (held,) = running(connection)
    assert not attempt(held).settled
    assert len(errors) == 1


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("taken_back", [False, True])
@pytest.mark.parametrize("atomic", [False, True])
def test_a_real_deadlock_that_is_swallowed(
    connection, session, declare, attempt, atomic, taken_back
):
    """The server has rolled everything back, and the COMMIT that follows would "succeed"."""
    first, second = make_report("first"), make_report("second")
    change = "UPDATE generated_reports SET tenant_id = %s WHERE id = %s"
    rival, rivals, errors = session(), [], []
    if connection.vendor == "postgresql":
        run(rival, "SET deadlock_timeout = '20s'")  # who notices first is the victim
    rival.set_autocommit(False)

    def work(context):
        make_report("k")
        run(default(), change, ["handler", second.id])
        for n in range(40):  # InnoDB's victim is whoever has written less
            run(rival, change, [n, first.id])
        rivals.append(Rival(lambda: run(rival, change, ["rival", second.id])))
        try:
            run(default(), change, ["handler", first.id])
        except DatabaseError as error:
            errors.append(error)
            if taken_back:
                transaction.set_rollback(False)

    handle(declare, work, atomic=atomic)
    (held,) = running(connection)
    outcome = attempt(held)
    rivals[0].result()
    rival.rollback()
    assert len(errors) == 1
    assert not outcome.settled
    assert settle(connection, [Ending(held.lease, outcome)])[0].status == "ready"
    assert reports() == ["first", "second"]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("atomic", [False, True])
def test_a_deadlock_of_an_enqueue_that_is_swallowed(connection, session, declare, attempt, atomic):
    """The queue's own statements end the transaction as any other does."""
    first = make_report("first")
    change = "UPDATE generated_reports SET tenant_id = %s WHERE id = %s"
    rival, rivals, errors = session(), [], []
    if connection.vendor == "postgresql":
        run(rival, "SET deadlock_timeout = '20s'")
    rival.set_autocommit(False)
    insert_one(rival, seal(build_request("arranged", {"n": 9}, key="wanted")))

    def work(context):
        make_report("k")
        run(default(), change, ["handler", first.id])
        for n in range(40):  # InnoDB's victim is whoever has written less
            insert_one(rival, seal(build_request("arranged", {"n": n})))
        rivals.append(Rival(lambda: run(rival, change, ["rival", first.id])))
        try:
            enqueue("arranged", {"n": 1}, key="wanted")
        except DatabaseError as error:
            errors.append(error)

    handle(declare, work, atomic=atomic)
    (held,) = running(connection)
    outcome = attempt(held)
    rivals[0].result()
    rival.rollback()
    assert len(errors) == 1
    assert not outcome.settled
    assert settle(connection, [Ending(held.lease, outcome)])[0].status == "ready"
    assert reports() == ["first"]
