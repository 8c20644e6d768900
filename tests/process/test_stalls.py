"""The database answers late or not at all: every wait has an end, and the worker comes back."""

from __future__ import annotations

import signal
from datetime import UTC, datetime

import pytest

from django_leasequeue import enqueue
from tests.faults import holding
from tests.faults.tree import children_of
from tests.process import rows
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

LOCK = {
    "mysql": "LOCK TABLES leasequeue_job WRITE",
    "postgresql": "LOCK TABLE leasequeue_job IN ACCESS EXCLUSIVE MODE",
}
#: A lost database is looked for again after five seconds at most.
BACK_SECONDS = 10


def stop(worker):
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.lines == []


def test_a_locked_table_stalls_no_worker(queue_db, second_connection, worker_process):
    """A22: somebody's ALTER or backup holds the whole table during polling."""
    first = enqueue("proc.report").id
    worker = worker_process("--lease", "2")
    worker.wait_event("job_completed", job_id=first)
    job_id = enqueue("proc.report", delay=0.5).id
    other = second_connection()
    with holding(other, LOCK[queue_db.vendor], []):
        worker.wait_event("database_lost", timeout=BACK_SECONDS)
        if queue_db.vendor == "mysql":
            with other.cursor() as cursor:
                cursor.execute("UNLOCK TABLES")
    worker.wait_event("database_back", timeout=BACK_SECONDS)
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    stop(worker)


def test_a_stalled_network_is_left_and_come_back_to(queue_db, worker_process, proxy, by_proxy):
    """A22: nothing is refused and nothing answers."""
    first = enqueue("proc.report").id
    worker = worker_process("--lease", "2", env=by_proxy)
    worker.wait_event("job_completed", job_id=first)
    proxy.stall()
    worker.wait_event("database_lost", timeout=BACK_SECONDS)
    job_id = enqueue("proc.report").id
    proxy.mend()
    worker.wait_event("job_completed", job_id=job_id, attempt=1, timeout=2 * BACK_SECONDS)
    stop(worker)


@pytest.mark.leaves_reserved
@pytest.mark.parametrize("how", ["stall", "cut"])
def test_a_handler_in_c_code_ends_before_a_lease_that_nobody_can_renew(
    queue_db, worker_process, proxy, by_proxy, gate, how
):
    """A22: whatever control waits for, it looks after its children in time."""
    job_id = enqueue("outages.stuck", {"gate": str(gate("a"))}).id
    # The last twentieth of the lease is not trusted: 0.4 s for this process to see the end, too.
    worker = worker_process("--lease", "8", env=by_proxy)
    gate("a").wait("started-1")
    (child,) = children_of(worker)
    getattr(proxy, how)()
    wait_until(lambda: child.gone, timeout=20)
    assert datetime.now(UTC) < rows.job(job_id).lease_until
    assert worker.named("database_lost")
    proxy.mend()
    stop(worker)
