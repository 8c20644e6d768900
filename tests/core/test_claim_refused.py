"""Refusals: a row that cannot be reserved is given up; a database that reserves none is not."""

from __future__ import annotations

import pytest
from django.db import IntegrityError

from django_leasequeue import enqueue
from django_leasequeue.core.claim import MAX_REFUSALS
from django_leasequeue.core.lanes import Lanes
from tests.core.arrange import claim_jobs, job
from tests.core.refusing import refusing

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


RESERVED = "status = 'reserved'"
POISON = "status = 'reserved' AND job_type = 'poison'"


def statuses(ids: list[int]) -> list[str]:
    return [job(job_id).status for job_id in ids]


@pytest.mark.parametrize("limit", [1, 4])
def test_a_database_that_reserves_nothing_kills_a_few_jobs_at_most(connection, limit):
    ids = [enqueue("t").id for _ in range(3 * MAX_REFUSALS)]
    lanes = Lanes(("default",))
    with refusing(connection, RESERVED):
        for _ in range(3):
            with pytest.raises(IntegrityError):
                claim_jobs(connection, limit, lanes=lanes)
    spared = len(ids) - MAX_REFUSALS
    assert statuses(ids) == ["dead"] * MAX_REFUSALS + ["ready"] * spared
    assert "refused" in job(ids[0]).last_error
    held = claim_jobs(connection, 1, lanes=lanes)
    assert [each.job_id for each in held] == ids[MAX_REFUSALS : MAX_REFUSALS + 1]


def test_poison_rows_are_given_up_however_many_there_are(connection):
    """A claim that succeeds between them tells that it is the rows' fault."""
    poison, good = [], []
    for _ in range(3):
        poison += [enqueue("poison").id for _ in range(MAX_REFUSALS)]
        good.append(enqueue("t").id)
    lanes = Lanes(("default",))
    with refusing(connection, POISON):
        for job_id in good:
            assert [each.job_id for each in claim_jobs(connection, 1, lanes=lanes)] == [job_id]
        assert lanes.refusals == 0
        assert claim_jobs(connection, 1, lanes=lanes) == []
    assert statuses(poison) == ["dead"] * len(poison)


def test_a_refusal_to_write_anything_is_raised_at_once(connection):
    made = enqueue("t")
    with refusing(connection, "status <> 'ready'"), pytest.raises(IntegrityError):
        claim_jobs(connection, 1)
    assert job(made.id).status == "ready"
