"""A bulk requeue that is killed in the middle, by kill -9, and carried on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.db import transaction

from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, Job
from tests.core.bulk import bury
from tests.fixtures.processes import MANAGE
from tests.harness.tied import tied
from tests.waiting import wait_until

JOBS = 3000


@pytest.fixture
def requeueing(queue_db, process_environment):
    """A process that requeues dead letters, not too fast to be met half-way."""
    bury(JOBS)
    arguments = ["leasequeue", "requeue", "--all", "--yes", "--rate", "1000"]
    with subprocess.Popen(
        tied([sys.executable, str(MANAGE), *arguments]),
        env=process_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        yield process
        process.kill()


def test_kill_and_go_on(requeueing, manage):
    """I2: no job twice, none forgotten, and the counts are of what was committed."""
    wait_until(lambda: BulkRun.objects.filter(changed__gt=0).exists(), timeout=40)
    requeueing.kill()
    requeueing.wait()
    wait_until(lambda: _holds_nothing(BulkRun.objects.get().pk))
    row = BulkRun.objects.get()
    assert row.state == "running"
    once = set(Job.objects.filter(status="ready").values_list("pk", flat=True))
    assert 0 < len(once) == row.changed < JOBS
    # They die again: the run that goes on has had them.
    again = Job.objects.filter(status="ready").update(status="dead", finished_at=UtcNow())
    ended = manage("leasequeue", "requeue", "--resume", str(row.pk))
    assert (ended.returncode, ended.stdout) == (0, f"{JOBS} jobs were requeued.\n"), ended.stderr
    row.refresh_from_db()
    assert (row.state, row.changed, row.left_out) == ("finished", JOBS, {})
    assert set(Job.objects.filter(status="dead").values_list("pk", flat=True)) == once
    assert Job.objects.filter(status="ready").count() == JOBS - again


def _holds_nothing(run_id: int) -> bool:
    """Tell whether the server has undone what the killed process had not committed."""
    with transaction.atomic():
        return BulkRun.objects.select_for_update().get(pk=run_id) is not None
