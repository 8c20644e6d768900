"""The fence against a handler's own snapshot: an old read view must not vouch for a lost lease."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections

from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job
from tests.core.arrange import claim_one, expire, job, outcomes, running
from tests.core.conftest import ISOLATION
from tests.core.reports import make_report, reports

pytestmark = [
    pytest.mark.only_on("mariadb", "mysql", "postgres"),
    pytest.mark.leaves_reserved,
]


@pytest.fixture
def repeatable(connection, monkeypatch):
    """Give every session that is opened from now on REPEATABLE READ."""
    options = connections.settings["default"]["OPTIONS"]
    level = ISOLATION[connection.vendor]["repeatable"]
    monkeypatch.setitem(options, "isolation_level", level)


def taken_over(rival: Any, job_id: int) -> None:
    expire(rival, job_id)
    assert len(recover_batch(rival)) == 1
    assert claim_one(rival, worker="rival:host:2:00").job_id == job_id


def seen_token(job_id: int) -> bytes | None:
    return Job.objects.values_list("lease_token", flat=True).get(pk=job_id)


@pytest.mark.usefixtures("repeatable")
def test_a_lease_lost_behind_an_open_snapshot(connection, session, declare, attempt):
    """B3: the handler's transaction still reads its own token; the write sees the rival's."""
    rival, seen = session(), []

    @declare("arranged", takes_context=True, atomic=True)
    def handler(context, n):
        before = seen_token(context.job_id)
        make_report()
        taken_over(rival, context.job_id)
        seen.append(seen_token(context.job_id) == before)

    (claimed,) = running(connection)
    outcome = attempt(claimed)
    assert seen == [True]  # the plain read was fooled, so this test is about what it says
    assert outcome.error.error_class in ("LeaseLost", "django.db.utils.OperationalError")
    (settled,) = settle(connection, [Ending(claimed.lease, outcome)])
    assert settled.verdict is Verdict.LOST
    assert reports() == []
    after = job(claimed.job_id)
    assert (after.status, after.leased_by, after.attempts) == ("reserved", "rival:host:2:00", 2)
    assert outcomes(claimed.job_id) == ["expired"]


@pytest.mark.usefixtures("repeatable")
def test_completing_under_repeatable_read(connection, session, declare, attempt):
    """B3: the first statement of complete() decides, not an earlier read of the handler."""
    rival = session()

    @declare("arranged", takes_context=True)
    def handler(context, n):
        seen_token(context.job_id)
        taken_over(rival, context.job_id)
        with context.complete():
            make_report()

    (claimed,) = running(connection)
    outcome = attempt(claimed)
    assert outcome.error.error_class == "LeaseLost"
    assert (reports(), outcomes(claimed.job_id)) == ([], ["expired"])


@pytest.mark.usefixtures("repeatable")
@pytest.mark.parametrize("atomic", [False, True])
def test_a_lease_that_is_held_completes_under_repeatable_read(connection, declare, attempt, atomic):
    """B3: renewals during the handler's snapshot do not cost it its job (but on PostgreSQL an
    atomic handler's snapshot does: it is told so, and tries again)."""

    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context, n):
        seen_token(context.job_id)
        if atomic:
            make_report()
        else:
            with context.complete():
                make_report()

    (claimed,) = running(connection)
    assert attempt(claimed).settled
    assert (reports(), job(claimed.job_id).status) == (["k"], "done")
