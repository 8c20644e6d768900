"""complete() and atomic=True: business rows, `done` and the attempt row are one transaction."""

from __future__ import annotations

import re

import pytest
from django.db import IntegrityError, connections, transaction

from django_leasequeue import JobResult, Skip, enqueue
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End
from tests.core.arrange import history, job, outcomes, running
from tests.core.reports import make_report, reports

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def rows(connection, sql, params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def after(connection, held, outcome):
    """Settle as a worker does and return the job's row."""
    if not outcome.settled:
        settle(connection, [Ending(held.lease, outcome)])
    return job(held.job_id)


def test_all_of_it(connection, attempt, effects):
    effects(lambda context: make_report(context.idempotency_key), {"rows": 1})
    (held,) = running(connection)
    outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.COMPLETED, True)
    row = job(held.job_id)
    assert (row.status, row.result, row.attempts) == ("done", {"rows": 1}, 1)
    assert (row.lease_token, row.lease_until, row.last_error) == (None, None, "")
    assert reports() == [row.idempotency_key]
    (ended,) = history(held.job_id)
    assert (ended.outcome, ended.token, ended.number) == ("completed", held.lease.token, 1)


def test_or_nothing(connection, attempt, effects):
    def work(context):
        make_report()
        raise ValueError("7")

    effects(work)
    (held,) = running(connection)
    outcome = attempt(held)
    assert (outcome.end, outcome.settled) == (End.FAILED, False)
    row = after(connection, held, outcome)
    assert (row.status, row.last_error, reports()) == ("ready", "ValueError", [])
    assert outcomes(held.job_id) == ["failed"]


def test_nobody_sees_a_part_of_it(connection, session, as_default, attempt, effects):
    seen = []

    def work(context):
        make_report()
        before = connections["default"]
        with as_default(session()):
            seen.append((reports(), Job.objects.get().status))
        assert connections["default"] is before

    effects(work)
    (held,) = running(connection)
    assert attempt(held).settled
    assert seen == [([], "reserved")]
    assert reports() == ["k"]


@pytest.mark.parametrize(("ago", "prolonged"), [(0, False), (20, True)])
def test_the_fence_comes_first_in_complete(
    connection, db_kind, session, declare, attempt, ago, prolonged
):
    """It holds the row until the commit, and prolongs for the block what is not new."""
    seen = []

    @declare("arranged", takes_context=True)
    def handler(context, n):
        with context.complete():
            row = Job.objects.get(pk=context.job_id)
            free = "SELECT id FROM leasequeue_job WHERE id = %s FOR UPDATE SKIP LOCKED"
            locked = db_kind == "sqlite" or not rows(rival, free, [context.job_id])
            seen.append((row.lease_until > until, locked))

    (held,) = running(connection)
    rival, until = session(), job(held.job_id).lease_until
    assert attempt(held, ago=ago).settled
    assert seen == [(prolonged or db_kind == "sqlite", True)]


@pytest.mark.parametrize("result", [object(), {1}, b"", float("nan"), "\0", "\ud800", 2**70])
def test_a_result_that_cannot_be_stored(connection, attempt, effects, result):
    """Case C7: it is encoded before the commit, so the effect is rolled back."""
    effects(lambda context: make_report(), result)
    (held,) = running(connection, max_attempts=1)
    row = after(connection, held, attempt(held))
    assert (row.status, reports()) == ("dead", [])
    assert "the result cannot be stored" in row.last_error


def test_a_result_that_is_too_large(connection, attempt, effects, settings):
    settings.LEASEQUEUE = {"MAX_RESULT_BYTES": 1000}
    effects(lambda context: make_report(), "x" * 1001)
    (held,) = running(connection)
    assert "1003 bytes" in after(connection, held, attempt(held)).last_error
    assert reports() == []


def test_enqueues_in_the_block_are_part_of_it(connection, attempt, effects):
    def work(context):
        make_report()
        assert enqueue("next", key="k").created
        assert not enqueue("next", key="k").created
        assert not enqueue("next", key="taken").created
        enqueue("next", {"after": "duplicates"})
        make_report("another")

    taken = enqueue("next", key="taken", queue="default", delay=60)
    effects(work)
    (held,) = running(connection)
    assert attempt(held).settled
    assert reports() == ["another", "k"]
    assert Job.objects.filter(job_type="next").count() == 3
    assert job(taken.id).status == "ready"


def test_what_a_block_enqueued_goes_with_it(connection, attempt, effects):
    def work(context):
        enqueue("next")
        raise ValueError

    effects(work)
    (held,) = running(connection)
    assert not attempt(held).settled
    assert not Job.objects.filter(job_type="next").exists()


def test_a_savepoint_of_the_handlers_own(connection, attempt, effects):
    def work(context):
        make_report("k")
        with pytest.raises(IntegrityError), transaction.atomic():
            make_report("k")
        make_report("l")

    effects(work)
    (held,) = running(connection)
    assert attempt(held).settled
    assert reports() == ["k", "l"]


def test_inside_a_transaction_it_is_refused(connection, declare, attempt):
    @declare("arranged", takes_context=True)
    def handler(context, n):
        with transaction.atomic():
            make_report()
            with context.complete():
                make_report("l")

    (held,) = running(connection)
    row = after(connection, held, attempt(held))
    assert (row.status, row.last_error) == ("ready", "RuntimeError")
    assert reports() == []


def test_an_atomic_handler_that_skips(connection, declare, attempt):
    """Returned, the skip keeps its rows; raised, it undoes them. The job is done either way."""

    @declare("arranged", atomic=True)
    def handler(n):
        make_report(str(n))
        if n:
            raise Skip("nothing to do")
        return JobResult.skipped("nothing to do")

    first, second = running(connection, 2)
    assert [after(connection, held, attempt(held)).status for held in (first, second)] == [
        "done",
        "done",
    ]
    assert outcomes(first.job_id) == outcomes(second.job_id) == ["skipped"]
    assert reports() == ["0"]


def test_the_deadline_is_looked_at_last_of_all(connection, attempt, effects):
    """The last statement before the COMMIT is under the fence."""
    statements = []

    def note(execute, sql, *rest):
        statements.append(sql)
        return execute(sql, *rest)

    def work(context):
        make_report()
        # In front, for the guard takes the last one away again.
        connections["default"].execute_wrappers.insert(0, note)

    effects(work)
    (held,) = running(connection)
    assert attempt(held).settled
    fenced = [n for n, sql in enumerate(statements) if re.search(r"lease_until\b[^,]* > ", sql)]
    ours = [n for n, sql in enumerate(statements) if "leasequeue:settle" in sql]
    assert fenced == ours[-1:]
    assert all("leasequeue:" in sql for sql in statements[fenced[0] :])
