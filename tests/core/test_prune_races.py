"""Prune beside others: requeues, claims, foreign keys of other tables, two prunes at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import IntegrityError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import enqueue_many, prune, requeue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import claim_jobs, outcomes, run
from tests.core.filling import ANALYZE
from tests.core.plans import explained
from tests.core.pruning import left, old_jobs
from tests.faults.rivals import Rival

pytestmark = pytest.mark.usefixtures("queue_db")


@pytest.fixture
def before_the_lock(connection):
    """Do something once, between prune's look and its lock."""

    def act_before(act: Any) -> Any:
        acts = [act]

        def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            if acts and "SELECT id, claims" in sql:
                acts.pop()()
            return execute(sql, params, many, context)

        return connection.execute_wrapper(note)

    return act_before


def deletes(sql: str) -> bool:
    """Tell whether it is the last statement of a batch, whose rows are all locked."""
    return "DELETE" in sql and "job_id" not in sql and "FROM leasequeue_job" in sql


def elsewhere(session: BaseDatabaseWrapper, as_default: Any, work: Any) -> Any:
    """Return `work` as another session does it, in its own thread."""

    def act() -> object:
        with as_default(session):
            return work()

    return lambda: Rival(act).result()


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("isolation", ["read", "repeatable"])
def test_a_requeue_between_the_look_and_the_lock(
    connection, session, as_default, before_the_lock, isolation
):
    ids = old_jobs(connection, 4, status="dead")
    act = elsewhere(session(isolation), as_default, lambda: requeue(ids[:2]))
    with before_the_lock(act):
        assert prune(status="dead", older_than=0).jobs == 2
    assert left() == ids[:2]
    assert set(Job.objects.values_list("status", flat=True)) == {"ready"}
    assert outcomes(ids[0]) == ["completed"]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_requeue_while_the_rows_are_locked(connection, session, as_default):
    """It skips what prune has locked, tries again, and leaves out what is gone."""
    ids = old_jobs(connection, 4, status="dead")
    requeued = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if deletes(sql) and not requeued:
            requeued.append(elsewhere(session(), as_default, lambda: requeue(ids))())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert prune(status="dead", older_than=0).jobs == 4
    assert (requeued, left()) == ([[]], [])


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_requeues_and_prunes_side_by_side(connection, session, as_default):
    """Every job is requeued, or pruned with all that is its own; none is both or neither."""
    ids = old_jobs(connection, 300, status="dead")
    requeued: list[int] = []

    def work() -> None:
        for start in range(0, len(ids), 20):
            requeued.extend(requeue(ids[start : start + 20]))

    with as_default(session()):
        pass
    rival_session = session()
    rival = Rival(elsewhere(rival_session, as_default, work))
    pruned = prune(status="dead", older_than=0, batch=7).jobs
    rival.result()
    assert sorted(requeued) == left()
    assert pruned + len(requeued) == 300
    assert set(Job.objects.values_list("status", flat=True)) <= {"ready"}
    assert set(JobAttempt.objects.values_list("job_id", flat=True)) == set(left())


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_two_prunes_at_once(connection, session, as_default):
    old_jobs(connection, 200)
    both = Rival(elsewhere(session(), as_default, lambda: prune(older_than=0, batch=9)))
    mine = prune(older_than=0, batch=11)
    theirs = both.result()
    assert mine.jobs + theirs.jobs + prune(older_than=0).jobs == 200
    assert mine.attempts + theirs.attempts <= 200
    assert not JobAttempt.objects.exists()


# A foreign key of another table


@pytest.fixture
def referring(connection):
    """A table of the project that refers to jobs, with a constraint in the database."""
    deferred = {"mysql": ""}.get(connection.vendor, " DEFERRABLE INITIALLY DEFERRED")
    run(
        connection,
        "CREATE TABLE prune_note (job_id bigint NOT NULL PRIMARY KEY, "
        f"FOREIGN KEY (job_id) REFERENCES leasequeue_job (id){deferred})",
    )
    yield lambda job_id: run(connection, f"INSERT INTO prune_note VALUES ({job_id})")
    run(connection, "DROP TABLE prune_note")


def test_a_job_that_another_table_refers_to_stays(connection, referring, tmp_path):
    from tests.core.pruning import archived

    ids = old_jobs(connection, 9, attempts=2)
    referring(ids[2])
    referring(ids[7])
    path = tmp_path / "a.gz"
    pruned = prune(older_than=0, batch=5, archive=path)
    assert (pruned.jobs, pruned.attempts, pruned.referenced) == (7, 14, 2)
    assert left() == [ids[2], ids[7]]
    assert JobAttempt.objects.count() == 4
    assert sorted(record["job"]["id"] for record in archived(path)) == sorted(
        set(ids) - {ids[2], ids[7]}
    )
    with pytest.raises(IntegrityError):
        run(connection, "DELETE FROM leasequeue_job")


# I3: beside workers


@pytest.fixture
def worker(alias):
    connection = open_control(alias, 60)
    yield connection
    connection.close()


def test_a_claim_meets_no_lock_of_prune(connection, worker):
    """I3: with a batch under way nobody waits: claims, settlements, recovery."""
    old_jobs(connection, 30, attempts=2)
    enqueue_many([("arranged", {"n": n}, {}) for n in range(40)])
    waits = {"mysql": "SET SESSION innodb_lock_wait_timeout = 1"}.get(connection.vendor)
    seen: Counter[str] = Counter()

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if deletes(sql) and connection.vendor != "sqlite":
            jobs = claim_jobs(worker, 4, lanes=Lanes(("default",)))
            settle(worker, [Ending(job.lease, Outcome(End.COMPLETED)) for job in jobs])
            recover_batch(worker)
            seen["claimed"] += len(jobs)
        return execute(sql, params, many, context)

    if waits:
        run(worker, waits)
    with connection.execute_wrapper(note):
        pruned = prune(older_than=60, batch=5)
    assert (pruned.jobs, pruned.attempts) == (30, 60)
    assert seen["claimed"] == (0 if connection.vendor == "sqlite" else 24)


@pytest.fixture
def steady_plans(connection):
    """PostgreSQL plans by the same statistics from the first batch to the last."""
    if connection.vendor != "postgresql":
        yield
        return
    tables = ("leasequeue_job", "leasequeue_jobattempt")
    for table in tables:
        run(connection, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    run(connection, "SET enable_seqscan = off")  # 250 of 5 200 rows: it may as well read them all
    yield
    run(connection, "RESET enable_seqscan")
    for table in tables:
        run(connection, f"ALTER TABLE {table} RESET (autovacuum_enabled)")


@pytest.mark.usefixtures("steady_plans")
def test_statements_and_rows_of_a_batch_are_bounded_and_by_index(connection):
    """I3, in small: no statement reads or deletes more than its batch."""
    old_jobs(connection, 1)
    fill(connection, 5000)
    enqueue_many([("arranged", {"n": n}, {"queue": "live"}) for n in range(200)])
    for table in ("leasequeue_job", "leasequeue_jobattempt"):
        run(connection, ANALYZE[connection.vendor].format(table))
    deleted: list[int] = []
    statements: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        result = execute(sql, params, many, context)
        statements.append(sql)
        if "DELETE" in sql:
            deleted.append(context["cursor"].rowcount)
        return result

    with explained(connection) as plans, connection.execute_wrapper(note):
        pruned = prune(older_than=0, batch=250, pause=0)
    assert (pruned.jobs, pruned.attempts) == (5000, 5000)
    assert max(deleted) == 250
    ours = [sql for sql in statements if "leasequeue:prune" in sql and "EXPLAIN" not in sql]
    # Two looks at most, a lock, three deletes for each batch; the clock, and rows beside the jobs.
    assert len(ours) <= 20 * 6 + 8
    for plan in plans:
        if "leasequeue_job" in plan.sql and "finished_at" in plan.sql and "LIMIT" in plan.sql:
            assert not plan.sorts, plan
            assert not plan.scans, plan
            assert plan.indexes <= {"leasequeue_job_recover"}, plan
        assert plan.reads is None or plan.reads <= 2 * 250 + 5, plan


def fill(connection, count):
    columns = "queue_name, job_type, payload, status, created_at, finished_at, claims"
    (first,) = left()
    for start in range(1, count, 500):
        ones = " UNION ALL ".join(["SELECT 1 AS one"] * min(500, count - start))
        run(
            connection,
            f"INSERT INTO leasequeue_job ({columns}) SELECT {columns} FROM leasequeue_job "
            f"CROSS JOIN ({ones}) many WHERE id = {first}",
        )
    run(
        connection,
        "INSERT INTO leasequeue_jobattempt (job_id, number, token, outcome) "
        f"SELECT id, 1, %s, 'completed' FROM leasequeue_job WHERE id > {first}",
        [b"t" * 16],
    )
