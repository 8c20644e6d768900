"""A row that somebody holds for longer than a lease: "now" is not when the statement began."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs, claim_one, job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import Rival, holding_job
from tests.waiting import wait_until

LEASE = 1.0


def ran_out(job_id: int) -> bool:
    return Job.objects.filter(pk=job_id, lease_until__lte=UtcNow()).exists()


@pytest.mark.parametrize("atomic", [False, True])
def test_a_completion_that_waits_for_longer_than_its_lease(
    connection, session, declare, attempt, atomic
):
    """B17: by the statement's own time it may be in time or late; it is all done, or all lost."""
    started = []

    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context):
        started.append(True)
        if atomic:
            make_report()
        else:
            with context.complete():
                make_report()

    enqueue("arranged")
    claimed = claim_one(connection, lease=LEASE)
    with holding_job(session(), claimed.job_id):
        # Trusted for long: the worker's own clock is not to save it here.
        rival = Rival(lambda: attempt(claimed, seconds=60))
        wait_until(lambda: ran_out(claimed.job_id))
        assert not rival.ended
    outcome = rival.result()
    if outcome.settled:
        # Nobody could take it over meanwhile: the token was still good under the row's lock.
        assert (job(claimed.job_id).status, reports()) == ("done", ["k"])
        assert outcomes(claimed.job_id) == ["completed"]
        assert recover_batch(connection) == []
        return
    assert outcome.error.error_class == "LeaseLost"
    (settled,) = settle(connection, [Ending(claimed.lease, outcome)])
    assert settled.verdict is Verdict.LOST
    assert reports() == []
    assert len(recover_batch(connection)) == 1
    assert (job(claimed.job_id).status, outcomes(claimed.job_id)) == ("ready", ["expired"])


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_claim_waits_for_no_row(connection, session, declare):
    """B17: it takes the next job at once, with a deadline from its own moment."""
    first, second = enqueue("t").id, enqueue("t").id
    with holding_job(session(), first):
        (claimed,) = claim_jobs(connection, lease=LEASE)
        assert claimed.job_id == second
        wait_until(lambda: ran_out(second))
        assert claim_jobs(connection) == []
    (late,) = claim_jobs(connection, lease=LEASE)
    assert late.job_id == first
    assert not ran_out(first)
    wait_until(lambda: ran_out(first))
    assert {entry.job_id for entry in recover_batch(connection)} == {first, second}
