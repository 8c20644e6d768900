"""A producer that lost a race for a key, and stays open, never costs the running job an attempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from django.db import IntegrityError

from django_leasequeue import enqueue
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import watching
from tests.field.workers import working
from tests.waiting import wait_until

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.only_on("mariadb", "mysql")]


@contextmanager
def refused(session, key: str) -> Iterator[None]:
    """Hold what InnoDB locks for an INSERT that met the key, in an open transaction."""
    with session.cursor() as cursor:
        cursor.execute("BEGIN")
        with pytest.raises(IntegrityError):
            cursor.execute(
                "INSERT INTO leasequeue_job (job_type, live_key) VALUES ('t', %s)", [key]
            )
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


@pytest.mark.parametrize("form", ["plain", "atomic", "complete"])
def test_its_end_waits_and_its_lease_is_kept(connection, session, declare, short_leases, form):
    """The lease is outlived several times; there is one attempt, and one effect."""

    @declare("t", takes_context=True, atomic=form == "atomic")
    def handler(context):
        if form == "complete":
            with context.complete():
                make_report("once")
        elif form == "atomic":
            make_report("once")

    made = enqueue("t", key="k", key_until="finished", max_attempts=1)
    with watching() as moments, ExitStack() as held:
        held.enter_context(refused(session(), job(made.id).live_key))
        with working():
            if form == "plain":
                moments.wait("settlement_pending", count=3)
                moments.wait("leases_renewed", count=4)
            else:
                moments.wait("key_awaited", count=20)
            assert job(made.id).status == "reserved"
            held.close()
            wait_until(lambda: job(made.id).status == "done")
    assert outcomes(made.id) == ["completed"]
    assert reports() == ([] if form == "plain" else ["once"])
