"""Workers that claim at the same moment get different jobs, and nobody waits for them.

Each claim is stopped between its locks and its COMMIT while the next one runs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed
from tests.core.arrange import claim_jobs, claim_one, expire, running, snapshot
from tests.core.interleave import at_statement
from tests.faults import Rival, holding_job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def claim_at_once(
    sessions: list[BaseDatabaseWrapper], queues: str, limit: int, then: Callable[[], object]
) -> list[list[Claimed]]:
    """Claim in every session, each begun before the one before it has committed; then `then`."""
    if not sessions:
        then()
        return []
    first, *rest = sessions
    others: list[list[Claimed]] = []

    def meanwhile() -> None:
        others.extend(claim_at_once(rest, queues, limit, then))

    with at_statement(first, "^COMMIT$", meanwhile) as reached:
        mine = claim_jobs(first, limit, queues=queues)
    assert reached
    return [mine, *others]


def impatient(connection: BaseDatabaseWrapper) -> BaseDatabaseWrapper:
    """Give up on a lock after a second, so that a wait is an error here."""
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
        else:
            cursor.execute("SET lock_timeout = 1000")
    return connection


@pytest.fixture(params=["read", "repeatable"])
def sessions(request, session, db_kind):
    """Four sessions of projects with that isolation level."""
    if db_kind == "sqlite":
        pytest.skip("has one writer at a time")
    return [impatient(session(request.param)) for _ in range(4)]


def one_queue(connection: BaseDatabaseWrapper) -> str:
    for _ in range(9):
        enqueue("t", queue="a")
    return "a"


def several_queues(connection: BaseDatabaseWrapper) -> str:
    for n in range(9):
        enqueue("t", queue="ab"[n % 2])
    return "b,empty,a"


def all_queues(connection: BaseDatabaseWrapper) -> str:
    for n in range(9):
        enqueue("t", queue="abc"[n % 3])
    return "*"


def several_priorities(connection: BaseDatabaseWrapper) -> str:
    for n in range(9):
        enqueue("t", queue="a", priority=n % 3)
    return "a"


def beside_expired_leases(connection: BaseDatabaseWrapper) -> str:
    expire(connection, *(job.job_id for job in running(connection, 5, queue="a")))
    return one_queue(connection)


def beside_many_in_the_future(connection: BaseDatabaseWrapper) -> str:
    for _ in range(30):
        enqueue("t", queue="a", delay=3600)
    return one_queue(connection)


SCENES = [
    one_queue,
    several_queues,
    all_queues,
    several_priorities,
    beside_expired_leases,
    beside_many_in_the_future,
]


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("limit", [1, 3])
def test_three_claims_at_once(connection, sessions, as_default, scene, limit):
    queues = scene(connection)
    *claimers, producer = sessions
    made = []

    def produce() -> None:
        with as_default(producer):
            made.extend(enqueue("t", queue=name, priority=p) for name in "abc" for p in (0, 2, 9))

    claims = claim_at_once(claimers, queues, limit, produce)
    ids = [job.job_id for jobs in claims for job in jobs]
    assert all(claims)
    assert len(ids) == len(set(ids))
    assert limit > 1 or len(ids) == 3
    assert len({jobs[0].lease.token for jobs in claims}) == 3
    assert len(made) == 9


@SERVERS
def test_a_claim_takes_what_is_free_and_waits_for_nothing(connection, session):
    locked, free = enqueue("t"), enqueue("t")
    with holding_job(session(), locked.id):
        assert [job.job_id for job in claim_jobs(connection, 5)] == [free.id]
    # Only the worker that skipped it may take a moment to look there again.
    assert claim_one(connection).job_id == locked.id


@SERVERS
def test_a_skipped_job_is_seen_again_by_the_same_worker(connection, session, lane_clock):
    locked, free = enqueue("t"), enqueue("t")
    lanes = Lanes(("default",))
    with holding_job(session(), locked.id):
        assert [job.job_id for job in claim_jobs(connection, 5, lanes=lanes)] == [free.id]
    lane_clock.now += 1
    assert claim_one(connection, lanes=lanes).job_id == locked.id


@SERVERS
def test_an_enqueue_that_is_not_committed_is_not_claimed(connection, session, as_default):
    producer = session()
    producer.set_autocommit(False)
    with as_default(producer):
        pending = enqueue("t")
    other = enqueue("t")
    assert [job.job_id for job in claim_jobs(connection, 5)] == [other.id]
    producer.commit()
    assert claim_one(connection).job_id == pending.id


def test_many_workers_empty_a_queue_together(connection, session):
    """No job twice, none left, on SQLite as well, where they wait for one another."""
    ids = {enqueue("t", priority=n % 2).id for n in range(60)}
    sessions = [session() for _ in range(4)]

    def work(connection: BaseDatabaseWrapper) -> list[int]:
        lanes, found = Lanes(("*",)), []
        while jobs := claim_jobs(connection, 3, lanes=lanes):
            found += [job.job_id for job in jobs]
        return found

    rivals = [Rival(lambda session=session: work(session)) for session in sessions]
    found = [job_id for rival in rivals for job_id in rival.result()]
    while left := claim_jobs(connection, 9):  # what was locked just when a worker looked its last
        found += [job.job_id for job in left]
    assert sorted(found) == sorted(ids)


def test_a_claim_touches_no_row_that_it_does_not_take(connection):
    enqueue("t")
    for options in ({"delay": 60}, {"queue": "other"}, {"priority": -1}):
        enqueue("t", **options)
    before = snapshot(connection)["leasequeue_job"]
    held = claim_one(connection, queues="default")
    after = snapshot(connection)["leasequeue_job"]
    changed = [new[0] for old, new in zip(before, after, strict=True) if old != new]
    assert changed == [held.job_id]
