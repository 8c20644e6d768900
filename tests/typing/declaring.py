"""`@job`, what it makes, and what enqueues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, assert_type

from django_leasequeue import (
    EnqueueError,
    Exponential,
    Fixed,
    JobContext,
    JobType,
    KeyTaken,
    LeaseQueueError,
    Linear,
    Snooze,
    aenqueue,
    aenqueue_many,
    enqueue,
    enqueue_many,
    job,
)
from django_leasequeue.models import Job


def work(order: int) -> None: ...


def hook(context: JobContext, error: BaseException) -> None: ...


def upcast(payload: dict[str, Any], version: int) -> dict[str, Any]:
    return payload


def declarations(after: datetime) -> None:
    assert_type(job(work), JobType)
    assert_type(job("orders.work"), Callable[[Callable[..., Any]], JobType])
    assert_type(job("orders.work", queue="orders", priority=5, timeout=2.5)(work), JobType)
    declared = job(
        "orders.careful",
        max_attempts=3,
        max_crashes=1,
        backoff=Exponential(30, 3600, jitter=False),
        lease=120,
        atomic=True,
        takes_context=True,
        permanent=(ValueError,),
        failed=hook,
        sensitive=("card",),
        key=lambda order: f"order:{order}",
        key_until="finished",
        version=2,
        upcast=upcast,
        every=timedelta(hours=1),
        timezone="Europe/Berlin",
        catch_up="all",
    )(work)
    assert_type(declared, JobType)
    assert_type(declared.name, str)
    assert_type(declared.using(key="k", delay=5, run_after=after), JobType)
    job("orders.work", backoff=Fixed(60))
    job("orders.work", backoff=Linear(base=30, cap=600))
    job("orders.work", backoff=lambda error, context: timedelta(seconds=5))
    job("orders.work", cron="0 4 * * *")


def mistakes(declared: JobType) -> None:
    job("orders.work", que="orders")  # type: ignore[call-overload]
    job("orders.work", priority="high")  # type: ignore[call-overload]
    job("orders.work", key_until="never")  # type: ignore[call-overload]
    declared.using(keys="k")  # type: ignore[call-arg]
    declared.using(on_conflict="ignore")  # type: ignore[arg-type]
    enqueue("orders.work", {"order": 7}, delay="soon")  # type: ignore[arg-type]
    enqueue("orders.work", [7])  # type: ignore[arg-type]
    enqueue(work)  # type: ignore[arg-type]


def enqueueing(declared: JobType) -> None:
    found = declared.enqueue(order=7)
    assert_type(found, Job)
    assert_type(found.created, bool)
    assert_type(found.replaced, bool)
    assert_type(declared.enqueue_many([{"order": 7}]), list[Job])
    assert_type(declared.using(queue="slow").enqueue(7), Job)
    assert_type(enqueue("orders.work", {"order": 7}, key="k", using="default"), Job)
    assert_type(enqueue(declared, expires=timedelta(days=1), on_conflict="raise"), Job)
    assert_type(enqueue_many([("orders.work", {"order": 7}, {"key": "k"})]), list[Job])
    assert_type(enqueue_many([(declared, None, {})], batch_size=100), list[Job])


async def from_a_coroutine(declared: JobType) -> None:
    assert_type(await declared.aenqueue(order=7), Job)
    assert_type(await aenqueue("orders.work", {"order": 7}, priority=1), Job)
    assert_type(await aenqueue_many([(declared, {"order": 7}, {})]), list[Job])


def errors(declared: JobType) -> None:
    try:
        declared.enqueue(order=7)
    except KeyTaken as taken:
        assert_type(taken.job_id, int)
    except EnqueueError as refused:
        own: LeaseQueueError = refused
        builtin: ValueError = refused
        raise own from builtin
    assert_type(Snooze(60, "not yet").reason, str)
    assert_type(Exponential().delay_for(1), float)
