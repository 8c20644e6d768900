"""A transaction of complete() that takes nearly a lease: nobody can renew, nobody need to."""

from __future__ import annotations

import signal

import pytest

from django_leasequeue import enqueue
from reports.models import GeneratedReport
from tests.process import rows


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("mode", [(), ("--solo",), ("--threads", "2")], ids=["child", "solo", "2"])
@pytest.mark.parametrize(
    ("before", "inside"), [(1.1, 2.2), (0, 2.1)], ids=["prolongs the lease", "locks the row"]
)
def test_it_is_not_interrupted_while_its_lease_holds(
    queue_db, worker_process, mode, before, inside
):
    """C17: begun long after the last renewal, it prolongs the lease itself.

    Of a new lease it may take three quarters.
    """
    job_id = enqueue("proc.complete_slowly", {"before": before, "inside": inside}).id
    worker = worker_process("--lease", "3", *mode)
    worker.wait_event("job_completed", job_id=job_id, attempt=1)
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert rows.outcomes(job_id) == ["completed"]
    assert [report.result_json for report in GeneratedReport.objects.all()] == [{"claim": 1}]
