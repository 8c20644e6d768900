"""No claim, renewal, settlement or recovery sorts or scans, whatever lies in the table.

Seen on real rows: 50 000 that are due in the future, thousands that are done, several queues and
priorities; with statistics of that table and with those of an empty one; and on a small table,
where a planner is tempted to scan. The session is a worker's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import claim_jobs, run
from tests.core.filling import Filling
from tests.core.plan_cases import CASES
from tests.core.plans import Plan, explained

CLAIM, RECOVER, PRIMARY = "leasequeue_job_claim", "leasequeue_job_recover", "PRIMARY"
KEYS = {"leasequeue_job_key", "leasequeue_job_live"}
ATTEMPTS = {"leasequeue_attempt_number", "leasequeue_attempt_token"}
#: The indexes that each kind of statement is meant to use.
INTENDED = {
    "lanes": {CLAIM, "leasequeue_queue_name"},
    "probe": {CLAIM},
    "claim": {CLAIM, PRIMARY},
    "recover": {RECOVER, PRIMARY},
    "bury": {RECOVER, PRIMARY},
    "drain": {RECOVER, PRIMARY, CLAIM, "leasequeue_job_type"},
    "wake": {"leasequeue_job_type", PRIMARY},
    "progress": {PRIMARY},
    "effect": {"leasequeue_effect_name"},
    "enqueue": KEYS,
    "enqueue_many": KEYS,
    "attempt": {PRIMARY, *ATTEMPTS},
    "fate": {PRIMARY, *ATTEMPTS},
    "standing": {PRIMARY, *ATTEMPTS},
}


@pytest.fixture(scope="module")
def filling(django_db_setup: None, django_db_blocker, alias: str) -> Iterator[Filling]:
    with django_db_blocker.unblock():
        table = Filling(connections[alias])
        yield table
        table.empty()


@pytest.fixture(scope="module", params=["small", "unanalyzed", "analyzed"])
def worker(
    request: pytest.FixtureRequest, filling: Filling, alias: str
) -> Iterator[BaseDatabaseWrapper]:
    """A worker's session on a table of that kind."""
    getattr(filling, request.param)()
    connection = open_control(alias, 60)
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def _clean(worker: BaseDatabaseWrapper) -> Iterator[None]:
    """Each case begins without due or reserved jobs of the one before."""
    yield
    done = "UPDATE leasequeue_job SET status = 'done' WHERE status = 'reserved'"
    run(worker, "UPDATE leasequeue_job SET status = 'done' WHERE queue_name = 'plan-o'")
    run(worker, done)
    while claim_jobs(worker, 100):
        run(worker, done)


@pytest.mark.parametrize(("case", "limit"), CASES.items(), ids=[case.__name__ for case in CASES])
def test_plan(worker, filling, case, limit):
    act = case(worker)
    sessions = [worker, connections["default"]]
    with ExitStack() as stack:
        plans = [stack.enter_context(explained(session)) for session in sessions]
        act()
    assert any(plans)
    for plan in plans[0]:
        assert_good(plan, limit)
    # A project's own session plans as the server likes: it may scan a small table, and sort the
    # few rows that it has fetched by their ids.
    for plan in [] if filling.is_small else plans[1]:
        plan.sorts &= plan.tag != "operate"
        assert_good(plan, limit)


def assert_good(plan: Plan, limit: int) -> None:
    assert not plan.sorts, plan
    assert not plan.scans, plan
    assert plan.indexes, plan
    assert plan.indexes <= INTENDED.get(plan.tag, {PRIMARY}), plan
    assert plan.reads is None or plan.reads <= limit, plan
