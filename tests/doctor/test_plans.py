"""Plans: the core's own statements, explained, on tables of any size; nothing is run or locked."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.inspection.explain import explained_instead
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.doctor import plans
from tests.core.arrange import expire, job, run, running, snapshot
from tests.core.filling import Filling


@pytest.mark.parametrize("rows", ["empty", "small"])
def test_sound_plans(connection, case, rows):
    """Of very many rows: tests/core/test_plans.py."""
    getattr(Filling(connection), rows)()
    assert list(plans.plans(case())) == []


@pytest.mark.leaves_reserved
def test_nothing_is_changed(connection, case):
    enqueue("arranged", queue="waiting")
    lost, *_others = running(connection, 2)
    expire(connection, lost.job_id)
    before = snapshot(connection)
    assert list(plans.plans(case())) == []
    assert snapshot(connection) == before


@pytest.mark.leaves_reserved
def test_explained_instead(connection, case):
    (lost,) = running(connection)
    expire(connection, lost.job_id)
    worker = case().worker
    with explained_instead(worker) as explained:
        assert recover_batch(worker) == []
    assert [plan.tag for plan in explained] == ["recover"]
    assert explained[0].indexes == {"leasequeue_job_recover"}
    assert job(lost.job_id).status == "reserved"


def test_locked_rows_hold_nothing_up(connection, case, second_connection):
    enqueue("arranged")
    other = second_connection()
    other.set_autocommit(False)
    try:
        if connection.vendor != "sqlite":
            run(other, "SELECT id FROM leasequeue_job FOR UPDATE")
        else:
            run(other, "SELECT id FROM leasequeue_job")
        assert list(plans.plans(case())) == []
    finally:
        other.rollback()
        other.set_autocommit(True)
