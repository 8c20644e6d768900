"""acomplete(fn): what complete() is to a function, for a coroutine handler."""

from __future__ import annotations

import gc

import pytest
from asgiref.sync import sync_to_async
from django.db import connection as own
from django.db import connections

from django_leasequeue import LeaseLost, enqueue
from django_leasequeue.outcomes import End
from tests.core.arrange import expire, history, job, outcomes, running
from tests.core.reports import make_report, reports

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


@pytest.fixture
def ends(queue_db, connection, declare, attempt):
    """Run one attempt of a coroutine handler; return its outcome and the claimed job."""

    def run_once(handler):
        declare("arranged", takes_context=True)(handler)
        (held,) = running(connection)
        return attempt(held), held

    yield run_once
    gc.collect()  # asgiref's thread for the loop ends with what an error's traceback holds


def test_all_of_it(ends):
    seen = []

    async def handler(context, n):
        seen.append(await context.acomplete(lambda: make_report(context.idempotency_key), {"n": n}))
        seen.append(context.completed)

    outcome, held = ends(handler)
    assert (outcome.end, outcome.settled) == (End.COMPLETED, True)
    row = job(held.job_id)
    assert (row.status, row.result, row.attempts) == ("done", {"n": 0}, 1)
    assert reports() == [row.idempotency_key]
    assert [(one.outcome, one.token) for one in history(held.job_id)] == [
        ("completed", held.lease.token)
    ]
    assert seen[1:] == [True]


def test_it_returns_what_the_function_returns(ends):
    seen = []

    async def handler(context, n):
        seen.append(await context.acomplete(lambda: own.in_atomic_block))

    ends(handler)
    assert seen == [True]


def test_or_nothing(ends):
    def work():
        make_report()
        raise ValueError("7")

    async def handler(context, n):
        await context.acomplete(work)

    outcome, _ = ends(handler)
    assert (outcome.end, outcome.settled, outcome.message) == (End.FAILED, False, "ValueError")
    assert reports() == []


def test_a_lost_lease_writes_nothing(ends, connection):
    seen = []

    async def handler(context, n):
        await sync_to_async(lambda: expire(connections[context.using], context.job_id))()
        try:
            await context.acomplete(make_report)
        except LeaseLost:
            seen.append("lost")
            raise

    outcome, held = ends(handler)
    assert (seen, outcome.end, outcome.settled) == (["lost"], End.RELEASED, False)
    assert (reports(), outcomes(held.job_id), job(held.job_id).status) == ([], [], "reserved")


def test_jobs_enqueued_in_it_exist_with_it(ends):
    async def handler(context, n):
        await context.acomplete(lambda: enqueue("next", queue="later"))

    outcome, held = ends(handler)
    assert outcome.settled
    assert [row.job_type for row in type(job(held.job_id)).objects.filter(queue_name="later")] == [
        "next"
    ]


async def _coroutine():
    make_report()


@pytest.mark.parametrize("fn", [_coroutine, lambda: [_coroutine()][0]], ids=["function", "lambda"])
def test_a_coroutine_has_no_transaction(ends, fn):
    async def handler(context, n):
        await context.acomplete(fn)

    outcome, held = ends(handler)
    assert (outcome.end, outcome.settled, outcome.message) == (End.FAILED, False, "TypeError")
    assert job(held.job_id).status == "reserved"


def test_once_in_an_attempt(ends):
    async def handler(context, n):
        await context.acomplete(lambda: None)
        await context.acomplete(make_report)

    outcome, _ = ends(handler)
    assert (outcome.end, reports()) == (End.COMPLETED, [])
