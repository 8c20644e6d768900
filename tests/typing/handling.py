"""What a handler is given, what it may return or raise, and who listens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, assert_type

from django_leasequeue import (
    JobCancelled,
    JobContext,
    JobCrashed,
    JobError,
    JobExpired,
    JobResult,
    JobTimeout,
    LeaseLost,
    LeaseQueueError,
    Reject,
    RejectedJob,
    Retry,
    Skip,
    Snooze,
    Worker,
    job,
    signals,
)
from django_leasequeue.outcomes import End, Outcome
from django_leasequeue.signals import QueueSignal


@job("orders.handle", takes_context=True)
def handle(context: JobContext, order: int) -> JobResult:
    assert_type(context.job_id, int)
    assert_type(context.job_type, str)
    assert_type(context.queue, str)
    assert_type(context.payload, dict[str, Any])
    assert_type(context.attempt, int)
    assert_type(context.max_attempts, int)
    assert_type(context.is_last_attempt, bool)
    assert_type(context.claims, int)
    assert_type(context.idempotency_key, str)
    assert_type(context.enqueued_at, datetime | None)
    assert_type(context.tick_at, datetime | None)
    assert_type(context.signature, str)
    assert_type(context.deadline, datetime | None)
    assert_type(context.leased_until, datetime)
    assert_type(context.stopping, bool)
    assert_type(context.remaining(), float | None)
    assert_type(context.effect_key("charge"), str)
    assert_type(context.last_checkpoint, Any)
    context.progress(0.5, "half")
    context.progress("half")  # type: ignore[arg-type]
    context.checkpoint({"at": 7})
    context.ensure_lease()
    with context.effect("charge") as first:
        assert_type(first, bool)
    with context.complete({"rows": 3}) as nothing:
        assert_type(nothing, None)
    return JobResult.success({"rows": 3})


@job("orders.wait", takes_context=True)
async def wait(context: JobContext) -> None:
    assert_type(await context.acomplete(lambda: 7), int)


def results(done: JobResult, outcome: Outcome) -> None:
    assert_type(JobResult.skipped("nothing to do"), JobResult)
    assert_type(done.data, Any)
    assert_type(done.is_success, bool)
    assert_type(done.is_skipped, bool)
    assert_type(done.skip_reason, str | None)
    assert_type(outcome.end, End)


def ends_on_purpose(number: int) -> None:
    match number:
        case 1:
            raise Skip("nothing to do")
        case 2:
            raise Snooze(timedelta(minutes=5), reason="not there yet")
        case 3:
            raise Retry(delay=30)
        case 4:
            raise Reject("no such order")
        case _:
            raise Retry(delay="soon")  # type: ignore[arg-type]


def interrupts() -> None:
    try:
        handle(order=7)
    except (LeaseLost, JobTimeout, JobCancelled) as interrupt:
        outside: BaseException = interrupt
        raise outside from None
    except (JobCrashed, JobExpired, RejectedJob) as error:
        ours: JobError = error
        raise ours from None
    except JobError as error:
        every: LeaseQueueError = error
        raise every from None


def listening() -> None:
    assert_type(signals.job_enqueued, QueueSignal)
    assert_type(signals.jobs_claimed, QueueSignal)
    assert_type(signals.job_started, QueueSignal)
    assert_type(signals.job_finished, QueueSignal)
    assert_type(signals.job_dead, QueueSignal)
    assert_type(signals.lease_lost, QueueSignal)
    assert_type(signals.worker_started, QueueSignal)
    assert_type(signals.worker_stopped, QueueSignal)
    signals.job_dead.connect(ends_on_purpose, dispatch_uid="mail")


def running() -> None:
    worker = Worker("mail,reports", lease=60, drain=True)
    assert_type(worker.run(), int)
    assert_type(worker.turn(), float | None)
    worker.stop()
    Worker(5)  # type: ignore[arg-type]
