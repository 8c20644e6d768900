"""effect(): business rows and the note that they were written, once per job and name."""

from __future__ import annotations

from contextlib import ExitStack, suppress

import pytest
from django.db import DatabaseError, connections, transaction

from django_leasequeue import LeaseLost, cancel, requeue
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import JobEffect
from django_leasequeue.outcomes import End
from tests.core.arrange import claim_one, expire, job, outcomes, run, running, shift, snapshot
from tests.core.reports import make_report, reports
from tests.faults import RECONNECT, Fault, broken, severs
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.fixture
def handle(declare):
    """Declares a handler of the arranged jobs: `work(context)`."""

    def declare_handler(work):
        @declare("arranged", takes_context=True)
        def handler(context, n):
            work(context)

    return declare_handler


@pytest.fixture
def charge(handle):
    """Declares a handler that charges once, then does `after(context)`; returns what it saw."""
    seen = []

    def declare_handler(after=lambda context: None):
        def work(context):
            with context.effect("charge") as first:
                seen.append(first)
                if first:
                    make_report(f"charge {context.claims}")
            after(context)

        handle(work)
        return seen

    return declare_handler


def again(connection, held, outcome):
    """Settle an attempt and return the job's next one."""
    settle(connection, [Ending(held.lease, outcome)])
    if job(held.job_id).status == "ready":
        shift(connection, held.job_id, "available_at", -1)
    else:
        assert requeue(held.job_id)
    return claim_one(connection)


def effects_of(held):
    return list(JobEffect.objects.filter(job_id=held.job_id).values_list("name", "number"))


def fail(context):
    raise ValueError


def test_it_happens_once_and_the_job_goes_on(connection, charge, attempt):
    seen = charge(fail)
    (held,) = running(connection)
    before = job(held.job_id)
    outcome = attempt(held)
    assert (seen, reports(), effects_of(held)) == ([True], ["charge 1"], [("charge", 1)])
    row = job(held.job_id)
    assert (row.status, row.attempts, row.lease_token) == ("reserved", 1, before.lease_token)
    assert not attempt(again(connection, held, outcome)).settled
    assert (seen, reports(), effects_of(held)) == ([True, False], ["charge 1"], [("charge", 1)])


@pytest.mark.parametrize("way", ["failed", "requeued", "crashed"])
def test_it_outlives_the_attempt(connection, charge, attempt, way):
    """A crash between the effect and the job's end; a requeue; a plain failure."""
    seen = charge(fail)
    (held,) = running(connection, max_attempts=1 if way == "requeued" else 5)
    outcome = attempt(held)
    if way == "crashed":
        expire(connection, held.job_id)
        recover_batch(connection)
        second = claim_one(connection)
    else:
        second = again(connection, held, outcome)
    attempt(second)
    assert (seen, reports()) == ([True, False], ["charge 1"])


def test_names_and_jobs_are_apart(connection, handle, attempt):
    seen = []

    def work(context):
        for name in ("charge", "Charge", "charge ", "mail", "charge"):
            with context.effect(name) as first:
                seen.append(first)

    handle(work)
    first, second = running(connection, 2)
    attempt(first)
    assert seen == [True, True, True, True, False]
    attempt(second)
    assert seen[5:] == seen[:5]


def test_the_block_runs_either_way(connection, handle, attempt):
    def work(context):
        for n in range(2):
            with context.effect("charge"):
                make_report(str(n))

    handle(work)
    (held,) = running(connection)
    attempt(held)
    assert reports() == ["0", "1"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, LeaseLost])
def test_what_the_block_raises_undoes_it(connection, handle, attempt, error):
    seen = []

    def work(context):
        with context.effect("charge") as first:
            seen.append(first)
            make_report()
            raise error()

    handle(work)
    (held,) = running(connection)
    outcome = attempt(held)
    assert (reports(), effects_of(held)) == ([], [])
    attempt(again(connection, held, outcome))
    assert seen == [True, True]


def test_the_lease_is_prolonged(connection, handle, attempt):
    handle(_effect)
    (held,) = running(connection)
    shift(connection, held.job_id, "lease_until", 5)
    attempt(held)
    row = job(held.job_id)
    assert (row.lease_until - row.claimed_at).total_seconds() > 55


def _effect(context, name="charge"):
    with context.effect(name):
        make_report()


@pytest.mark.parametrize("way", ["expired", "recovered", "cancelled", "taken by another"])
def test_without_the_lease_nothing_is_written(connection, handle, attempt, way):
    handle(_effect)
    (held,) = running(connection)
    if way == "cancelled":
        cancel(held.job_id)
    else:
        expire(connection, held.job_id)
    if way in ("recovered", "taken by another"):
        recover_batch(connection)
    if way == "taken by another":
        claim_one(connection)
    before = snapshot(connection)
    assert attempt(held).error.error_class == "LeaseLost"
    assert (reports(), snapshot(connection)) == ([], before)


def test_a_lease_that_ran_out_in_the_block(connection, handle, attempt):
    """The fence is the last statement, too."""

    def work(context):
        with context.effect("charge"):
            make_report()
            expire(connections["default"], context.job_id)

    handle(work)
    (held,) = running(connection)
    assert attempt(held).error.error_class == "LeaseLost"
    assert (reports(), effects_of(held)) == ([], [])


@SERVERS
def test_a_deadline_that_passes_meanwhile_gives_nobody_the_job(
    connection, session, handle, attempt
):
    """Two attempts cannot race: while the block runs, its row is nobody else's."""
    rival = session()

    def work(context):
        with context.effect("charge"):
            make_report()
            wait_until(lambda: _is_over(rival, context.job_id))
            assert recover_batch(rival) == []
        context.ensure_lease()

    handle(work)
    (held,) = running(connection)
    shift(connection, held.job_id, "lease_until", 0.3)
    assert attempt(held).end is End.COMPLETED
    assert (reports(), effects_of(held)) == (["k"], [("charge", 1)])


def _is_over(session, job_id):
    moment = dialect_for(session).now
    with session.cursor() as cursor:
        cursor.execute(
            f"SELECT lease_until <= {moment} FROM leasequeue_job WHERE id = %s", [job_id]
        )
        return cursor.fetchone()[0]


def test_two_attempts_racing(connection, handle, attempt):
    """The older one stands before its effect while the newer one has it."""
    seen = []

    def work(context):
        if context.claims == 1:
            expire(connections["default"], context.job_id)
            recover_batch(connections["default"])
            attempt(claim_one(connections["default"]))
        with context.effect("charge") as first:
            seen.append((context.claims, first))
            make_report(str(context.claims))

    handle(work)
    (held,) = running(connection)
    assert attempt(held).error.error_class == "LeaseLost"
    assert (seen, reports(), effects_of(held)) == ([(2, True)], ["2"], [("charge", 2)])


@pytest.mark.parametrize("name", ["", "x" * 256, "\0", "\ud800", None, 7])
def test_names_that_cannot_be_stored(connection, handle, attempt, name):
    handle(lambda context: _effect(context, name))
    (held,) = running(connection)
    assert "1 to 255 characters" in attempt(held).error.text
    assert reports() == []


def test_the_longest_name(connection, handle, attempt):
    handle(lambda context: _effect(context, "😀" * 255))
    (held,) = running(connection)
    assert attempt(held).end is End.COMPLETED
    assert effects_of(held) == [("😀" * 255, 1)]


def swallowed(context):
    with suppress(DatabaseError):
        run(connections["default"], "SELECT no_such_column FROM leasequeue_job")


def marked_for_rollback(context):
    transaction.set_rollback(True)


@pytest.mark.parametrize("work", [swallowed, marked_for_rollback])
def test_swallowed_errors(connection, handle, attempt, work):
    """Cases A6, A7: as under complete(), nothing half-done is committed as a success."""

    def handler(context):
        with context.effect("charge"):
            make_report()
            work(context)

    handle(handler)
    (held,) = running(connection)
    assert attempt(held).end is End.FAILED
    assert (reports(), effects_of(held)) == ([], [])


def inside_a_transaction(context):
    with transaction.atomic():
        _effect(context)


def inside_complete(context):
    with context.complete():
        _effect(context)


@pytest.mark.parametrize("work", [inside_a_transaction, inside_complete])
def test_it_is_refused_where_it_could_not_commit(connection, handle, attempt, work):
    handle(work)
    (held,) = running(connection)
    assert attempt(held).error.error_class == "RuntimeError"
    assert (reports(), effects_of(held), job(held.job_id).status) == ([], [], "reserved")


def test_after_complete_the_job_is_done(connection, handle, attempt):
    def work(context):
        with context.complete():
            make_report("done")
        _effect(context)

    handle(work)
    (held,) = running(connection)
    assert attempt(held).settled
    assert (reports(), effects_of(held), outcomes(held.job_id)) == (["done"], [], ["completed"])


def test_an_on_commit_callback_that_raises_changes_nothing(connection, handle, attempt):
    def work(context):
        with context.effect("charge"):
            transaction.on_commit(lambda: 1 / 0)
            make_report()

    handle(work)
    (held,) = running(connection)
    assert attempt(held).end is End.COMPLETED
    assert (reports(), effects_of(held)) == (["k"], [("charge", 1)])


@pytest.fixture
def losing(connection):
    """Loses the answer to the next COMMIT of the calling thread, before or after it was done."""
    code = next(code for code in RECONNECT[connection.vendor] if severs(code))
    struck, faults = [], ExitStack()

    def lose(when):
        struck.append(Fault(code, match=lambda sql: sql == "COMMIT", when=when))
        faults.enter_context(broken(connections["default"], struck[-1]))

    yield lose
    faults.close()
    assert [fault.fired for fault in struck] == [1]


@SERVERS
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_was_lost(connection, handle, attempt, losing, when):
    seen = []

    def work(context):
        with context.effect("charge") as first:
            seen.append(first)
            if context.claims == 1:
                losing(when)
                make_report()

    handle(work)
    (held,) = running(connection)
    outcome = attempt(held)
    assert outcome.end is {"before": End.FAILED, "after": End.COMPLETED}[when]
    assert (reports(), effects_of(held)) == {
        "before": ([], []),
        "after": (["k"], [("charge", 1)]),
    }[when]
    if when == "before":
        wait_until(lambda: settle(connection, [Ending(held.lease, outcome)])[0].status)
        shift(connection, held.job_id, "available_at", -1)
        attempt(claim_one(connection))
        assert seen == [True, True]


@SERVERS
def test_a_repeated_effect_whose_answer_was_lost_is_a_failure(connection, handle, attempt, losing):
    """It leaves nothing by which it could be known; a repeat finds the effect all the same."""

    def work(context):
        _effect(context)
        with context.effect("charge"):
            losing("after")

    handle(work)
    (held,) = running(connection)
    assert attempt(held).end is End.FAILED
    assert effects_of(held) == [("charge", 1)]
