"""A schedule that ticks every second, several workers, one killed: a job for each second, once.

SCHEDULE_TICKS=60 and SCHEDULE_WORKERS=5 run it for a minute; without, a few seconds have to do.
"""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest

from django_leasequeue import add_schedule
from django_leasequeue.models import Job, Schedule
from tests.waiting import wait_until

TICKS = int(os.environ.get("SCHEDULE_TICKS", "6"))
WORKERS = int(os.environ.get("SCHEDULE_WORKERS", "3"))


def made() -> int:
    return Job.objects.filter(schedule="each second").count()


@pytest.mark.timeout(120 + 2 * TICKS)
def test_a_job_for_each_second_and_none_twice(queue_db, worker_process):
    workers = [worker_process() for _ in range(WORKERS)]
    for worker in workers:
        worker.wait_event("worker_started")
    first = add_schedule("each second", "proc.note", every=1).next_tick
    wait_until(lambda: made() >= TICKS // 2, timeout=30 + TICKS)
    victim = max(workers, key=lambda worker: len(worker.named("schedule_ticked")))
    victim.signal(signal.SIGKILL)
    wait_until(lambda: made() >= TICKS, timeout=30 + TICKS)
    Schedule.objects.update(enabled=False)
    for worker in workers:
        if worker is not victim:
            worker.signal(signal.SIGTERM)
            assert worker.wait() == 0
    found = list(Job.objects.order_by("tick_at").values_list("tick_at", flat=True))
    assert found == [first + timedelta(seconds=number) for number in range(len(found))]
    assert Schedule.objects.get().last_tick == found[-1]
    Job.objects.filter(status="reserved").update(status="ready")  # what the victim was running
