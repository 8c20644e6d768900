"""What is noted about a group of dead letters, and bulk runs that are carried on in steps."""

from __future__ import annotations

import pytest

from django_leasequeue import cancel
from django_leasequeue.core.bulk import cancel_run, start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.bulk_step import step
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.core.dead_letters import annotate
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun, DeadGroup, Job
from tests.core.arrange import run
from tests.core.bulk import bury, statuses
from tests.faults import holding_job

pytestmark = pytest.mark.usefixtures("connection")
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def begun(options: Options | None = None, **wanted):
    return start("requeue", JobFilter(**wanted), options or Options(), by="ops").pk


def state(run_id: int) -> str:
    return BulkRun.objects.get(pk=run_id).state


def test_notes_keep_one_another(connection):
    annotate(connection, "f" * 16, note="see the runbook")
    annotate(connection, "f" * 16, snoozed_until=UtcNow())
    row = DeadGroup.objects.get()
    assert row.note == "see the runbook" and row.snoozed_until is not None


def test_a_run_changes_no_more_than_it_may(connection):
    ids = bury(500)
    run_id = begun(Options(most=250))
    step(connection, run_id, seconds=30)
    assert statuses(ids) == ["ready"] * 250 + ["dead"] * 250
    row = BulkRun.objects.get()
    assert (row.state, row.changed) == ("finished", 250)
    with pytest.raises(LeaseQueueError):
        begun(Options(most=0))


def test_an_empty_fingerprint_is_one(connection):
    (with_one,) = bury(1, fingerprint="f" * 16)
    (without,) = bury(1)
    step(connection, begun(fingerprint=""), seconds=30)
    assert statuses([with_one, without]) == ["dead", "ready"]


def test_steps_go_at_the_rate_however_often(connection):
    ids = bury(5)
    run_id = begun(Options(rate=0.001))
    for _ in range(3):
        step(connection, run_id, seconds=0)
    assert statuses(ids) == ["ready", *["dead"] * 4]
    later = "UPDATE leasequeue_bulkrun SET next_at = '2021-01-01 00:00:00'"
    run(connection, later)
    step(connection, run_id, seconds=0)
    assert statuses(ids) == ["ready"] * 2 + ["dead"] * 3


def test_steps_wait_for_the_canary_and_then_go_on(connection):
    ids = bury(5)
    run_id = begun(Options(canary=2))
    for _ in range(3):
        step(connection, run_id, seconds=0)
    assert statuses(ids) == ["ready"] * 2 + ["dead"] * 3
    Job.objects.filter(pk__in=ids[:2]).update(status="done")
    for _ in range(3):
        step(connection, run_id, seconds=30)
    assert statuses(ids) == ["done"] * 2 + ["ready"] * 3
    assert state(run_id) == "finished"


def test_steps_stop_for_a_canary_that_is_cancelled_or_late(connection):
    ids = bury(2)
    run_id = begun(Options(canary=1))
    step(connection, run_id, seconds=0)
    cancel(ids[0])
    step(connection, run_id, seconds=0)
    assert state(run_id) == "stopped"
    run_id = begun(Options(canary=1, canary_wait=0))
    for _ in range(2):
        step(connection, run_id, seconds=0)
    assert state(run_id) == "stopped"


def test_a_run_that_is_over_is_left_alone(connection):
    ids = bury(2)
    run_id = begun()
    cancel_run(run_id)
    step(connection, run_id, seconds=30)
    assert statuses(ids) == ["dead"] * 2
    with pytest.raises(BulkRun.DoesNotExist):
        step(connection, run_id + 1, seconds=0)


@SERVERS
def test_a_locked_job_is_left_out_in_the_end(connection, second_connection):
    ids = bury(3)
    run_id = begun()
    with holding_job(second_connection(), ids[1]):
        step(connection, run_id, seconds=30)
    assert statuses(ids) == ["ready", "dead", "ready"]
    assert BulkRun.objects.get().left_out == {"locked": 1}
