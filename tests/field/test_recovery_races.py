"""Recovery against whoever else wants the row: it holds what it read until it has written."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

from django_leasequeue import LeaseLost, enqueue
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.lease import hold_within, renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, expire, job, outcomes, running
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


@contextmanager
def paused(connection: Any, between: Callable[[], None]) -> Any:
    """Call `between` once, after recovery has read its rows and before it writes them."""
    calls: list[str] = []

    def watch(execute, sql, params, many, context):
        if "leasequeue:recover" in sql and "UPDATE" in sql and not calls:
            calls.append(sql)
            between()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(watch):
        yield calls


def ran_out(job_id: int) -> bool:
    return Job.objects.filter(pk=job_id, lease_until__lte=UtcNow()).exists()


def complete(rival, lease):
    (settled,) = settle(rival, [Ending(lease, Outcome(End.COMPLETED))])
    assert settled.verdict is Verdict.LOST


def completion_with_effects(rival, lease):
    with rival.cursor() as cursor:
        cursor.execute("BEGIN")
        with pytest.raises(LeaseLost):
            hold_within(rival, cursor, lease, 60)
        cursor.execute("ROLLBACK")


def renewal(rival, lease):
    assert renew(rival, [lease], 60).renewed == ()


def claim_anew(rival, lease):
    assert claim_jobs(rival) == []


@pytest.mark.parametrize("move", [complete, completion_with_effects, renewal, claim_anew])
def test_what_comes_between_recoverys_read_and_its_write(connection, session, move):
    """B2: the worker completes, renews, or another claims, while recovery stands still."""
    rival = session()
    (claimed,) = running(connection)
    expire(connection, claimed.job_id)
    with paused(connection, lambda: move(rival, claimed.lease)) as calls:
        assert [entry.job_id for entry in recover_batch(connection)] == [claimed.job_id]
    assert len(calls) == 1
    after = job(claimed.job_id)
    assert (after.status, after.attempts, after.crashes) == ("ready", 1, 1)
    assert outcomes(claimed.job_id) == ["expired"]


def test_a_lease_that_is_prolonged_in_an_open_transaction_is_left_alone(connection, session):
    """B2: recovery passes over a completion under way, although the old deadline is past."""
    handler, control = session(), session()
    enqueue("arranged")
    claimed = claim_one(connection, lease=0.2)
    with handler.cursor() as cursor:
        cursor.execute("BEGIN")
        hold_within(handler, cursor, claimed.lease, 60)
        wait_until(lambda: ran_out(claimed.job_id))
        assert recover_batch(control) == []
        cursor.execute("COMMIT")
    assert recover_batch(control) == []
    assert renew(control, [claimed.lease], 0.1).renewed == (claimed.lease,)
    expire(control, claimed.job_id)
    assert len(recover_batch(control)) == 1
