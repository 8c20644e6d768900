"""Rows that nothing sane wrote, by plain SQL or a partial restore, never stop a worker."""

from __future__ import annotations

import secrets

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.recover import recover_batch
from tests.core.arrange import expire, job, outcomes, run, running, write
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")


def test_an_attempt_that_is_on_record_already(connection):
    """Recovery gives that row up, without an attempt row, and takes the others back."""
    before, poison, after = running(connection, 3)
    run(
        connection,
        "INSERT INTO leasequeue_jobattempt (job_id, number, token, outcome)"
        " VALUES (%s, 1, %s, 'failed')",
        [poison.job_id, secrets.token_bytes(16)],
    )
    expire(connection, before.job_id, poison.job_id, after.job_id)
    found = {each.job_id: each.status for each in recover_batch(connection)}
    assert found == {before.job_id: "ready", poison.job_id: "dead", after.job_id: "ready"}
    assert "refused" in job(poison.job_id).last_error
    assert outcomes(poison.job_id) == ["failed"]
    assert recover_batch(connection) == []


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_counter_at_its_end(connection, declare):
    """The claim that cannot count it up makes it dead; the job behind it runs."""
    declare("t")(lambda: None)
    poison, good = enqueue("t").id, enqueue("t").id
    largest = {"postgresql": 2**31 - 1}.get(connection.vendor, 2**32 - 1)
    write(connection, poison, claims=largest)
    drain()
    assert job(poison).status == "dead"
    assert "refused" in job(poison).last_error
    assert job(good).status == "done"


@pytest.mark.only_on("postgres")
def test_a_time_that_python_does_not_have(connection, declare):
    declare("t")(lambda: None)
    early = enqueue("t").id
    run(connection, "UPDATE leasequeue_job SET available_at = '-infinity'")
    drain()
    run(connection, "UPDATE leasequeue_job SET available_at = created_at")
    assert job(early).status == "done"


def test_a_reserved_row_without_a_deadline_ends_no_drain(connection, declare):
    declare("t")(lambda: None)
    stuck, good = enqueue("t").id, enqueue("t").id
    write(connection, stuck, status="reserved")
    drain()
    assert (job(stuck).status, job(good).status) == ("reserved", "done")
    write(connection, stuck, status="cancelled")
