"""Handlers whose rows are committed with the queue's own: complete, atomic, effect, checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from django_leasequeue import job
from django_leasequeue.models import Job, JobEffect
from reports.models import GeneratedReport
from tests.sweep.rounds import Case, Round

Act = Callable[[], object]


def make_row(context: Any) -> None:
    """Write a row that no unique index keeps from being written twice by two attempts."""
    key = f"{context.job_id}-{context.claims}"
    values = {"tenant_id": f"job-{context.job_id}", "report_month": "2042-01"}
    GeneratedReport.objects.create(idempotency_key=key, result_json={}, **values)


def declare_handlers() -> None:
    """Declare the job types of these cases."""

    @job("sweep.complete", takes_context=True)
    def complete(context: Any, n: int) -> None:
        with context.complete({"n": n}):
            make_row(context)

    @job("sweep.atomic", takes_context=True, atomic=True)
    def atomic(context: Any, n: int) -> None:
        make_row(context)

    @job("sweep.effect", takes_context=True)
    def effect(context: Any, n: int) -> None:
        with context.effect("row") as first:
            if first:
                make_row(context)

    @job("sweep.checkpoint", takes_context=True)
    def checkpoint(context: Any, n: int) -> None:
        step = context.last_checkpoint or 0
        if step < 1:
            context.checkpoint(1)
        if step < 2:
            with transaction.atomic():
                make_row(context)
                context.checkpoint(2)


def completing(now: Round) -> Act:
    return run_handler(now, "sweep.complete")


def completing_atomically(now: Round) -> Act:
    return run_handler(now, "sweep.atomic")


def completing_with_a_key(now: Round) -> Act:
    return run_handler(now, "sweep.complete", key=now.queue, key_until="finished")


def having_an_effect(now: Round) -> Act:
    """The row and the note of it are there once, whichever attempt wrote them."""

    def check() -> None:
        notes = JobEffect.objects.filter(job_id__in=ids).values_list("job_id", "name")
        assert list(notes) == [(ids[0], "row")]

    act = run_handler(now, "sweep.effect")
    ids = list(Job.objects.filter(queue_name=now.queue).values_list("pk", flat=True))
    now.checks.append(check)
    return act


def saving_a_checkpoint(now: Round) -> Act:
    """The row is there once: the checkpoint that was committed with it says so."""

    def check() -> None:
        assert Job.objects.get(queue_name=now.queue).checkpoint == 2

    now.checks.append(check)
    return run_handler(now, "sweep.checkpoint")


def run_handler(now: Round, job_type: str, **options: Any) -> Act:
    now.job_type = job_type
    (claimed,) = now.claimed(1, **options)
    return lambda: now.run(claimed)


CASES: list[Case] = [
    completing,
    completing_atomically,
    completing_with_a_key,
    having_an_effect,
    saving_a_checkpoint,
]
