"""Presence: operators see a worker, its children and what it runs; it works without being seen."""

from __future__ import annotations

import signal
from contextlib import contextmanager

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.presence import request_drain
from django_leasequeue.models import Worker
from tests.process import rows
from tests.process.accounts import least_privileged
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


def test_a_worker_is_seen_from_its_start_to_its_end(queue_db, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--processes", "2", "--name", "seen", "--queues", "default,mail")
    gate("a").wait("started")

    def shown():
        row = Worker.objects.filter(pid=worker.pid).first()
        return row if row and row.current_jobs and row.seen_at > row.started_at else None

    row = wait_until(shown, timeout=15)  # it is refreshed every five seconds
    assert row.name.startswith("seen:") and row.name.split(":")[2] == str(worker.pid)
    assert (row.children, row.queues, row.stopped_at) == (2, ["default", "mail"], None)
    assert [(one["id"], one["type"]) for one in row.current_jobs] == [(job_id, "proc.wait")]
    assert worker.wait_event("worker_started")["worker"] == row.name
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    gone = Worker.objects.get()
    assert gone.pk == row.pk
    assert gone.stopped_at > row.seen_at
    assert (gone.children, gone.current_jobs) == (0, [])


def test_a_worker_drains_when_the_admin_asks_it(queue_db, worker_process, gate):
    """As at a SIGTERM: the running job ends, no other begins, and the row says that it stopped."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--processes", "1")
    gate("a").wait("started")
    wait_until(lambda: Worker.objects.filter(pid=worker.pid).exists(), timeout=15)
    row = Worker.objects.get(pid=worker.pid)
    assert request_drain(queue_db, row.pk, row.name)
    assert worker.wait_event("drain_requested")["worker"] == row.name
    left = enqueue("proc.wait", {"gate": str(gate("b"))}).id
    gate("a").say("go")
    assert worker.wait() == 0
    assert [rows.job(pk).status for pk in (job_id, left)] == ["done", "ready"]
    assert Worker.objects.get().stopped_at is not None


@contextmanager
def unseen_account(connection):
    """Yield the environment of an account that may write every table but the workers'."""
    with least_privileged(connection) as account:
        name = account.login["user"]
        _take_away(connection, name)
        yield account.environment


def _take_away(connection, name):
    tables = [t for t in connection.introspection.table_names() if t != "leasequeue_worker"]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"REVOKE INSERT, UPDATE ON leasequeue_worker FROM {name}")
            return
        database = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"REVOKE INSERT, UPDATE ON {database}.* FROM {name}@'%'")
        for table in tables:
            cursor.execute(f"GRANT INSERT, UPDATE ON {database}.{table} TO {name}@'%'")


def test_a_worker_that_may_not_write_its_row_works_on(queue_db, worker_process, gate):
    """One warning; its leases are renewed all the same."""
    with unseen_account(queue_db) as environment:
        job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
        worker = worker_process("--lease", "1.5", env=environment)
        worker.wait_event("presence_refused")
        gate("a").wait("started")
        until = rows.job(job_id).lease_until
        wait_until(lambda: rows.job(job_id).lease_until > until)
        gate("a").say("go")
        worker.wait_event("job_completed", job_id=job_id)
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0
    assert len(worker.named("presence_refused")) == 1
    assert not worker.named("database_lost") and not worker.named("renewal_failed")
    assert not Worker.objects.exists()
