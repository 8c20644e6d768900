"""Case E11: a thousand jobs that fail in the same second do not come back in the same second."""

from __future__ import annotations

from collections import Counter

import pytest

from django_leasequeue import enqueue_many
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs
from tests.field.slot import opened

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

COUNT = 1000


def test_a_thousand_failures_are_spread(connection, declare):
    """By the default backoff: over the half of its first five seconds, about evenly."""

    @declare("down")
    def down():
        raise ConnectionError

    enqueue_many([("down", {}, {})] * COUNT)
    jobs = claim_jobs(connection, COUNT)
    with opened() as slot:
        endings = [Ending(held.lease, slot.execute(held)) for held in jobs]
    assert all(2.5 <= ending.outcome.delay <= 5 for ending in endings)
    settle(connection, endings)
    rows = Job.objects.filter(status="ready", attempts=1).values_list("available_at", flat=True)
    moments = [moment.timestamp() for moment in rows]
    assert len(moments) == COUNT
    assert max(moments) - min(moments) > 2.2
    tenths = Counter(int((moment - min(moments)) * 10) for moment in moments)
    assert max(tenths.values()) < COUNT / 10  # a fortieth each is even; far beyond chance
