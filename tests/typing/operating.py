"""What an operator's script calls: each says what really changed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type

from django_leasequeue import (
    JobFilter,
    Pruned,
    ScheduleError,
    add_schedule,
    cancel,
    cancel_many,
    disable_schedule,
    edit_schedule,
    enable_schedule,
    erase,
    list_schedules,
    next_ticks,
    pause,
    prune,
    recover,
    requeue,
    requeue_many,
    reschedule,
    resume,
    run_schedule,
    sign,
    verify,
)
from django_leasequeue.models import BulkRun, Job, Schedule


def jobs(job: Job) -> None:
    assert_type(cancel(job), list[int])
    assert_type(requeue([7, 8]), list[int])
    assert_type(requeue(7, payload={"order": 7}), list[int])
    assert_type(erase(Job.objects.filter(pk=7)), list[int])
    assert_type(reschedule(7, delay=timedelta(hours=1)), list[int])
    assert_type(requeue_many(JobFilter(job_type="orders.work"), rate=50), BulkRun)
    assert_type(cancel_many(JobFilter("default"), dry_run=True), BulkRun)
    assert_type(recover(), int)
    assert_type(sign(job), str)
    assert_type(verify(job), bool)
    requeue("7")  # type: ignore[arg-type]


def queues() -> None:
    assert_type(pause("default", by="root", reason="maintenance"), bool)
    assert_type(resume("default"), bool)
    pause(b"default")  # type: ignore[arg-type]


def schedules() -> None:
    try:
        made = add_schedule("nightly", job_type="orders.work", cron="0 4 * * *")
    except ScheduleError as refused:
        raise SystemExit(str(refused)) from None
    assert_type(made, Schedule)
    assert_type(edit_schedule("nightly", every=3600), Schedule)
    assert_type(enable_schedule("nightly"), bool)
    assert_type(disable_schedule("nightly"), bool)
    assert_type(run_schedule("nightly"), Job)
    assert_type(list_schedules(), list[Schedule])
    assert_type(next_ticks(made, 3), list[datetime])


def cleaning() -> None:
    assert_type(prune(older_than=timedelta(days=30), status=["done"]), Pruned)
    assert_type(prune().jobs, int)
