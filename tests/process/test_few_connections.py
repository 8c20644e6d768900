"""An account that may have few connections: renewals have theirs first, and claims none without."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

LIMIT = {
    "mysql": "ALTER USER {name}@'%' WITH MAX_USER_CONNECTIONS {count}",
    "postgresql": "ALTER ROLE {name} CONNECTION LIMIT {count}",
}


@pytest.fixture
def limited(queue_db, least_account):
    """Set how many connections the account may have."""

    def limit(count):
        with queue_db.cursor() as cursor:
            name = least_account.login["user"]
            cursor.execute(LIMIT[queue_db.vendor].format(name=name, count=count))

    return limit


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []


def test_with_two_connections_a_running_job_keeps_its_lease(
    queue_db, least_account, limited, worker_process, gate
):
    """B11: one for control and one for renewals, opened before the claim; no third is needed."""
    limited(2)
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--lease", "2", env=least_account.environment)
    gate("a").wait("started-1")
    first = rows.job(job_id).lease_until
    wait_until(lambda: (rows.job(job_id).lease_until - first).total_seconds() > 2)
    limited(10)
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)
    assert not worker.named("renewal_failed")


def test_with_one_connection_nothing_is_claimed(queue_db, least_account, limited, worker_process):
    """B11: whichever of the two has it, the worker says so, and begins when there are more."""
    limited(1)
    job_id = enqueue("proc.report").id
    worker = worker_process("--lease", "2", env=least_account.environment)

    def said():
        return worker.named("database_lost") or worker.named("renewal_failed")

    wait_until(said, timeout=20, message=f"not a word: {worker.log()}")
    assert not worker.named("job_claimed")
    limited(10)
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)
    assert rows.outcomes(job_id) == ["completed"]


def test_with_no_connection_at_all_the_worker_waits(
    queue_db, least_account, limited, worker_process
):
    """B11: somebody else has the only one; too many connections are no fatal error."""
    limited(1)
    job_id = enqueue("proc.report").id
    with rows.raw_cursor(queue_db, **least_account.login):
        worker = worker_process("--lease", "2", env=least_account.environment)
        worker.wait_event("database_lost")
        assert not worker.named("job_claimed")
    limited(10)
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)
