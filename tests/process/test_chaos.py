"""Chaos: a child killed every second, control killed three times, and every effect exactly once.

CHAOS_JOBS=10000 runs it with as many jobs (--log-cli-level=INFO shows the figures); without, a
small part of them has to do.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db.models import Count, F

from django_leasequeue import enqueue_many
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import Job, JobAttempt
from reports.models import GeneratedReport
from tests.faults.tree import children_of, tree_of, wait_gone

JOBS = int(os.environ.get("CHAOS_JOBS", "1000"))
SECONDS = 2.0
STUCK = timedelta(seconds=SECONDS + 10)
#: Parts of the jobs done at which control is killed.
RESTARTS = (0.2, 0.45, 0.7)
KILL_EVERY = 1.0
LIMIT = 60 + JOBS / 20

logger = logging.getLogger(__name__)
pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


class Chaos:
    """One worker after the other, and what is done to them."""

    def __init__(self, start):
        self._start = start
        self.worker = start()
        self.children_killed = self.restarts = 0
        self._kill_at = time.monotonic() + KILL_EVERY

    def kill_a_child(self):
        if time.monotonic() < self._kill_at:
            return
        self._kill_at += KILL_EVERY
        victim = random.choice(children_of(self.worker))
        with suppress(ProcessLookupError):
            victim.signal(signal.SIGKILL)
            self.children_killed += 1

    def restart(self):
        family = tree_of(self.worker.pid)
        self.worker.signal(signal.SIGKILL)
        wait_gone(family)
        assert self.worker.wait() == -signal.SIGKILL
        self.restarts += 1
        self.worker = self._start()


def done():
    return Job.objects.filter(status="done").count()


def stuck():
    old = Job.objects.filter(status="reserved", claimed_at__lt=UtcNow() - STUCK)
    return list(old.values_list("id", flat=True))


@pytest.mark.timeout(120 + LIMIT)
def test_each_effect_is_there_exactly_once(queue_db, worker_process):
    enqueue_many([("outages.effect", {}, {"max_attempts": 1000})] * JOBS)
    with queue_db.cursor() as cursor:
        cursor.execute("UPDATE leasequeue_job SET max_crashes = 1000")
    began = time.monotonic()
    chaos = Chaos(lambda: worker_process("--processes", "2", "--lease", str(SECONDS)))
    while (count := done()) < JOBS:
        assert time.monotonic() < began + LIMIT, f"{count} of {JOBS}\n{chaos.worker.log()[-5000:]}"
        assert not stuck()
        chaos.kill_a_child()
        if chaos.restarts < len(RESTARTS) and count >= RESTARTS[chaos.restarts] * JOBS:
            chaos.restart()
        time.sleep(0.1)
    took = time.monotonic() - began
    chaos.worker.signal(signal.SIGTERM)
    assert chaos.worker.wait() == 0

    assert chaos.restarts == len(RESTARTS)
    assert chaos.children_killed >= 2
    assert not Job.objects.exclude(status="done").exists()
    effects = GeneratedReport.objects.values("tenant_id").annotate(count=Count("id"))
    assert effects.count() == JOBS
    assert not effects.exclude(count=1).exists()
    ends = JobAttempt.objects.values_list("outcome").annotate(count=Count("id"))
    outcomes = dict(ends.order_by())
    assert outcomes["completed"] == JOBS
    assert set(outcomes) <= {"completed", "crashed", "expired", "released"}
    assert not Job.objects.filter(claims__lt=F("attempts")).exists()
    done_by = JobAttempt.objects.filter(outcome="completed").values_list("job_id", "number")
    kept = GeneratedReport.objects.values_list("tenant_id", "result_json")
    assert {f"job-{job}": {"claim": number} for job, number in done_by} == dict(kept)
    logger.info("%.0f s, %d children killed, %s", took, chaos.children_killed, outcomes)
