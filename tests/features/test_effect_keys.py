"""S1: for an external API, a stable key; for the table of effects, the job's own."""

from __future__ import annotations

import pytest

from django_leasequeue import Fixed, enqueue, requeue
from django_leasequeue.codec import digest_key
from django_leasequeue.outcomes import End
from reports.models import GeneratedReport
from tests.core.reports import make_report, reports

pytestmark = pytest.mark.usefixtures("connection")


def test_an_effect_key_is_equal_over_attempts(declare, finish):
    """Over a requeue as well; other names and other jobs have other keys."""
    seen = []

    @declare("charge", takes_context=True, backoff=Fixed(0), max_attempts=2)
    def charge(context):
        seen.append([context.effect_key("charge"), context.effect_key("mail")])
        raise OSError

    first = enqueue("charge", key="order:7").id
    finish()
    finish()
    requeue([first])
    finish()
    assert [len(keys[0]) for keys in seen] == [64, 64, 64]
    assert seen[0] == seen[1] == seen[2]
    enqueue("charge", key="order:8", priority=1)
    finish()
    assert len({*seen[0], *seen[3]}) == 4


def test_the_business_effect_carries_the_job_s_key(declare, finish):
    """The unique key of the effect's table is the digest that the enqueue made of the identity."""

    @declare("report", takes_context=True)
    def report(context):
        with context.complete():
            make_report(context.idempotency_key)

    enqueue("report", key="monthly-report:acme:2042-01")
    assert finish()[0].end is End.COMPLETED
    assert reports() == [digest_key("monthly-report:acme:2042-01")]


def test_an_effect_that_is_there_already_is_kept(declare, finish):
    """A second job for the same effect ends well, and changes nothing of it."""

    @declare("report", takes_context=True)
    def report(context, state):
        with context.complete():
            GeneratedReport.objects.get_or_create(
                idempotency_key="effect",
                defaults={"tenant_id": "a", "report_month": "2042-01", "result_json": state},
            )

    for state in ("first", "second"):
        enqueue("report", {"state": state})
        assert finish()[1].status == "done"
    assert GeneratedReport.objects.get().result_json == "first"
