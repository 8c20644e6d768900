"""Sessions that the server ends: by KILL at any moment, because they are idle, or as it goes."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest
from django.db.models import Count

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from tests.process import rows
from tests.process.sessions import sever
from tests.waiting import wait_until

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

STORM_JOBS = 500
#: The server ends a session after so many idle seconds.
IDLE = 3
SETTINGS = f"""
import json
import os
from tests.process.settings import *
from tests.process.settings import DATABASES

own = DATABASES["default"]
own["CONN_MAX_AGE"] = json.loads(os.environ["AGE"])
if own["ENGINE"].endswith("mysql"):
    init = own["OPTIONS"].get("init_command")
    own["OPTIONS"]["init_command"] = ", ".join(
        filter(None, [init, "wait_timeout = {IDLE}" if init else "SET wait_timeout = {IDLE}"])
    )
else:
    given = own["OPTIONS"].get("options", "")
    own["OPTIONS"]["options"] = given + " -c idle_session_timeout={IDLE}s"
"""


def stop(worker, seconds=30.0):
    worker.signal(signal.SIGTERM)
    assert worker.wait(seconds) == 0
    assert worker.lines == []


def test_a_storm_of_killed_sessions_loses_nothing_and_doubles_nothing(queue_db, worker_process):
    """G1: every session, several times a second: in claims, handlers, commits and renewals."""
    enqueue_many([("outages.effect", {}, {"max_attempts": 1000})] * STORM_JOBS)
    with queue_db.cursor() as cursor:
        cursor.execute("UPDATE leasequeue_job SET max_crashes = 1000")
    worker = worker_process("--processes", "2", "--lease", "2")
    worker.wait_event("worker_started")
    storms, severed = 0, 0.0
    until = time.monotonic() + 40
    while Job.objects.filter(status="done").count() < STORM_JOBS:
        assert time.monotonic() < until, worker.log()[-5000:]
        if storms < 40:
            sever(queue_db)
            severed = time.monotonic()
            storms += 1
        time.sleep(0.1)
    # A connection that was in use within the last second is trusted without a question.
    wait_until(lambda: time.monotonic() > severed + 1.2)
    after = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=after, attempt=1, timeout=10)
    stop(worker)
    effects = GeneratedReport.objects.exclude(tenant_id=f"job-{after}")
    counted = effects.values("tenant_id").annotate(count=Count("id"))
    assert counted.count() == STORM_JOBS
    assert not counted.exclude(count=1).exists()
    assert JobAttempt.objects.filter(outcome="completed").count() == STORM_JOBS + 1
    logging.getLogger(__name__).info("%d storms, %d log lines", storms, len(worker.events))


def seconds_of_cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_lost_database_is_waited_for_without_a_hot_loop(
    queue_db, worker_process, proxy, by_proxy
):
    """G1: control, its renewer and an idle child use next to no processor meanwhile."""
    worker = worker_process("--lease", "2", env=by_proxy)
    first = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=first)
    proxy.cut()
    worker.wait_event("database_lost")
    began, used = time.monotonic(), seconds_of_cpu(worker.pid)
    wait_until(lambda: time.monotonic() > began + 3)
    assert seconds_of_cpu(worker.pid) - used < 0.9  # of three seconds
    assert len(worker.events) < 10
    proxy.mend()
    second = enqueue("proc.report").id
    worker.wait_event("job_completed", job_id=second, attempt=1, timeout=10)
    stop(worker)


@pytest.fixture
def impatient(process_environment, tmp_path):
    """Return the environment of a project whose sessions end when they are idle."""
    (tmp_path / "impatient_settings.py").write_text(SETTINGS)
    path = os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]])
    return lambda age: {
        "DJANGO_SETTINGS_MODULE": "impatient_settings",
        "PYTHONPATH": path,
        "AGE": age,
    }


def test_a_job_after_a_long_pause_costs_one_attempt(queue_db, worker_process, impatient):
    """G2: whatever CONN_MAX_AGE says, the first job after it finds a session that works."""
    ages = ("null", "0", "600")
    workers = {age: worker_process("--queues", age, env=impatient(age)) for age in ages}
    for age, worker in workers.items():
        worker.wait_event("job_completed", job_id=enqueue("proc.report", queue=age).id)
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 2 * IDLE + 1)
    for age, worker in workers.items():
        job_id = enqueue("proc.report", queue=age).id
        worker.wait_event("job_completed", job_id=job_id, attempt=1)
        assert rows.outcomes(job_id) == ["completed"]
    for worker in workers.values():
        stop(worker)
        assert {event["event"] for event in worker.events} == {
            "worker_started",
            "job_claimed",
            "job_completed",
            "worker_stopped",
        }


@pytest.mark.leaves_reserved
def test_a_stop_with_a_job_when_the_database_is_down_already(
    queue_db, worker_process, proxy, by_proxy, gate
):
    """F11: ends with 0 soon after its grace period; says once that the database is lost."""
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--lease", "20", "--grace", "1", env=by_proxy)
    gate("a").wait("started-1")
    proxy.cut()
    worker.wait_event("database_lost")
    stop(worker, 9)
    assert [event["event"] for event in worker.events if event["event"] != "renewal_failed"] == [
        "worker_started",
        "job_claimed",
        "database_lost",
        "job_lease_lost",
        "worker_stopped",
    ]
    assert rows.job(job_id).status == "reserved"
