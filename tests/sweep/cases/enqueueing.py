"""Enqueue: one job, a key that is taken, many at once, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.test import override_settings

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.models import Job
from reports.models import GeneratedReport
from tests.sweep.rounds import PLAIN, Case, Round

Act = Callable[[], object]


def enqueueing_one(now: Round) -> Act:
    """Without a key whoever was killed cannot repeat it: the job is there or not, but not twice."""
    now.ends = ["done|missing"]
    return lambda: enqueue(PLAIN, {"n": 1}, queue=now.queue)


def enqueueing_a_key(now: Round) -> Act:
    return enqueueing_twice(now, key=now.queue)


def enqueueing_a_key_until_finished(now: Round) -> Act:
    return enqueueing_twice(now, key=now.queue, key_until="finished")


def enqueueing_a_replacement(now: Round) -> Act:
    return enqueueing_twice(now, key=now.queue, on_conflict="replace")


def enqueueing_over_a_running_job(now: Round) -> Act:
    """What runs already is not replaced, and has its key still."""
    now.repeats = True
    options: dict[str, Any] = {"queue": now.queue, "key": now.queue, "key_until": "finished"}
    (job,) = now.claimed(1, key=now.queue, key_until="finished")

    def act() -> None:
        found = enqueue(PLAIN, {"n": 2}, on_conflict="replace", **options)
        assert (found.id, found.created, found.replaced) == (job.job_id, False, False)

    return act


def enqueueing_twice(now: Round, **options: Any) -> Act:
    now.ends, now.repeats = ["done"], True
    options["queue"] = now.queue

    def act() -> None:
        first, second = (enqueue(PLAIN, {"n": n}, **options) for n in range(2))
        assert (first.id, second.created) == (second.id, False)

    return act


def enqueueing_with_a_notice(now: Round) -> Act:
    """Whether idle workers hear of it or not: the job is there, and the connection works."""
    now.ends, now.repeats = ["done"], True
    told = {**settings.LEASEQUEUE, "WAKEUP": "notify"}

    def act() -> None:
        with override_settings(LEASEQUEUE=told):
            enqueue(PLAIN, {}, queue=now.queue, key=now.queue)
        enqueue(PLAIN, {}, queue=now.queue, key=now.queue)

    return act


def enqueueing_many(now: Round) -> Act:
    taken = {"queue": now.queue, "key": now.queue}
    live = {"queue": now.queue, "key": f"live {now.queue}", "key_until": "finished"}
    now.enqueued(1, key=now.queue)
    now.ends, now.repeats = ["done"] * 3, True
    options = [taken, live, live, {**live, "key": "x"}]
    jobs = [(PLAIN, {"n": 1}, option) for option in options]
    return lambda: enqueue_many(jobs)


def enqueueing_in_a_transaction(now: Round) -> Act:
    """The queue repeats nothing of the caller's: row and job are both there, or neither is."""
    now.ends, now.repeats = ["done"] * 2, True

    def both() -> None:
        with transaction.atomic():
            values = {"tenant_id": now.queue, "report_month": "2042-01", "result_json": {}}
            GeneratedReport.objects.create(idempotency_key=now.queue, **values)
            enqueue(PLAIN, {}, queue=now.queue, key=now.queue)
            enqueue_many([(PLAIN, {}, {"queue": now.queue, "key": f"many {now.queue}"})])

    def act() -> None:
        try:
            both()
        except (DatabaseError, InterfaceError):
            now.connection.close_if_unusable_or_obsolete()  # as Django does after a request
            rows = GeneratedReport.objects.filter(tenant_id=now.queue).count()
            assert Job.objects.filter(queue_name=now.queue).count() == 2 * rows
            if not rows:
                both()

    return act


CASES: list[Case] = [
    enqueueing_one,
    enqueueing_a_key,
    enqueueing_a_key_until_finished,
    enqueueing_a_replacement,
    enqueueing_over_a_running_job,
    enqueueing_with_a_notice,
    enqueueing_many,
    enqueueing_in_a_transaction,
]
