"""Two sessions want the same job at the same moment: one of them gets it, and neither waits.

One is stopped inside its transaction while the other comes. More of the kind, and which: README.md.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from django_leasequeue import cancel, enqueue, requeue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, job, outcomes, running
from tests.core.interleave import at_statement
from tests.core.reports import make_report, reports
from tests.faults import Fault, broken_everywhere, moved

pytestmark = [
    pytest.mark.only_on("mariadb", "mysql", "postgres"),  # SQLite has one writer at a time
    pytest.mark.leaves_reserved,
]
COMPLETED = Outcome(End.COMPLETED)


@pytest.fixture
def dead(connection) -> int:
    """The id of a dead job."""
    (claimed,) = running(connection)
    settle(connection, [Ending(claimed.lease, Outcome(End.REJECTED))])
    return claimed.job_id


# Requeue against claim ---------------------------------------------------------------------------


def test_a_claim_while_a_requeue_is_under_way(connection, session, dead):
    rival, early = session(), []
    with at_statement(connection, "^COMMIT$", lambda: early.extend(claim_jobs(rival))) as reached:
        assert requeue(dead) == [dead]
    assert reached
    assert early == []
    assert [claim_one(rival).job_id, requeue(dead)] == [dead, []]
    assert (job(dead).status, job(dead).attempts, job(dead).claims) == ("reserved", 1, 2)


def test_a_requeue_while_a_claim_is_under_way(connection, session, as_default, dead):
    requeue(dead)
    rival, other = session(), session()

    def meanwhile() -> None:
        with as_default(other):
            assert requeue(dead) == []

    with at_statement(rival, "^COMMIT$", meanwhile) as reached:
        assert claim_one(rival).job_id == dead
    assert reached
    assert (job(dead).status, job(dead).attempts) == ("reserved", 1)


def test_two_requeues(connection, session, as_default, dead):
    other, second = session(), []

    def meanwhile() -> None:
        with as_default(other):
            second.extend(requeue(dead))

    with at_statement(connection, "^COMMIT$", meanwhile) as reached:
        first = requeue(dead)
    assert reached
    assert (first, second) == ([dead], [])


# Cancel against completion -----------------------------------------------------------------------


def test_a_settlement_while_a_cancel_is_under_way(connection, session):
    (claimed,) = running(connection)
    control, early = session(), []
    endings = [Ending(claimed.lease, COMPLETED)]
    with at_statement(connection, "^COMMIT$", lambda: early.extend(settle(control, endings))):
        assert cancel(claimed.job_id) == [claimed.job_id]
    assert [settled.verdict for settled in early] == [Verdict.PENDING]
    assert settle(control, endings)[0].verdict is Verdict.LOST
    assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("cancelled", ["cancelled"])


def test_a_cancel_while_a_settlement_is_under_way(connection, session):
    (claimed,) = running(connection)
    control, cancelled = session(), []

    def meanwhile() -> None:
        cancelled.extend(cancel(claimed.job_id))

    with at_statement(control, "^COMMIT$", meanwhile) as reached:
        (settled,) = settle(control, [Ending(claimed.lease, COMPLETED)])
    assert reached
    assert (settled.verdict, cancelled, cancel(claimed.job_id)) == (Verdict.SETTLED, [], [])
    assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("done", ["completed"])


@pytest.mark.parametrize("atomic", [False, True])
def test_a_cancel_while_effects_are_written(
    connection, session, as_default, declare, attempt, atomic
):
    """With complete() the handler has the row and wins; with atomic=True cancel comes first."""
    operator, cancelled = session(), []

    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context, n):
        with nullcontext() if atomic else context.complete():
            make_report()
            with as_default(operator):
                cancelled.extend(cancel(context.job_id))

    (claimed,) = running(connection)
    outcome = attempt(claimed)
    won = not atomic
    assert (outcome.settled, len(reports()), len(cancelled)) == (won, int(won), int(not won))
    assert job(claimed.job_id).status == ("done" if won else "cancelled")
    assert outcomes(claimed.job_id) == ["completed" if won else "cancelled"]


# Renewal and completion against recovery ---------------------------------------------------------


def test_recovery_while_a_renewal_is_under_way(connection, session):
    """By recovery's clock the lease is over, and the row is held by the renewal."""
    (claimed,) = running(connection)
    rival, recovered = session(), []

    def meanwhile() -> None:
        with moved(rival, 61):
            recovered.extend(recover_batch(rival))

    with at_statement(connection, "leasequeue:renew", meanwhile, nth=1, after=True) as reached:
        assert renew(connection, [claimed.lease], 60).renewed == (claimed.lease,)
    assert reached
    assert (recovered, recover_batch(rival)) == ([], [])
    assert job(claimed.job_id).status == "reserved"


@pytest.mark.parametrize("atomic", [False, True])
def test_recovery_between_the_fence_and_the_commit(connection, session, declare, attempt, atomic):
    """The deadline passes after the last fenced statement: the row is held, so it is still ours."""
    rival, recovered = session(), []
    rival.ensure_connection()  # before every new one is watched

    def meanwhile(sql: str) -> bool:
        if sql == "COMMIT":
            with moved(rival, 61):
                recovered.extend(recover_batch(rival))
        return False

    @declare("arranged", atomic=atomic, takes_context=True)
    def handler(context, n):
        with nullcontext() if atomic else context.complete():
            make_report()

    (claimed,) = running(connection)
    with broken_everywhere(Fault(None, match=meanwhile)) as watched:
        assert attempt(claimed).settled
    assert (watched.fired, recovered) == (0, [])
    assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("done", ["completed"])
    assert len(reports()) == 1


# A late commit against the low-water mark --------------------------------------------------------


def test_a_job_that_commits_after_the_mark_has_passed_it(
    connection, session, as_default, lane_clock
):
    """It was enqueued first and commits last; its lane is looked at whole within a second."""
    slow, lanes = session(), Lanes(("default",))
    slow.set_autocommit(False)
    with as_default(slow):
        late = enqueue("t")
    others = [enqueue("t").id for _ in range(5)]
    assert [each.job_id for each in claim_jobs(connection, 4, lanes=lanes)] == others[:4]
    slow.commit()
    assert claim_one(connection, lanes=lanes).job_id == others[4]
    assert claim_jobs(connection, lanes=lanes) == []
    lane_clock.now += 1
    assert claim_one(connection, lanes=lanes).job_id == late.id
