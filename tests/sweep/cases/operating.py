"""What an operator does: cancel, requeue, reschedule, erase, pause, prune, sign, and in bulk."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.test import override_settings

from django_leasequeue import cancel, pause, prune, requeue, reschedule, resume
from django_leasequeue.core.bulk import cancel_many, go_on, requeue_many
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.operate import erase
from django_leasequeue.core.resign import Selection, resign
from django_leasequeue.models import BulkRun, Job, JobAttempt, JobEffect, Queue
from django_leasequeue.outcomes import End
from tests.sweep.rounds import Case, Round

Act = Callable[[], object]
KEY = "a signing key that is long enough for this"


def cancelling(now: Round) -> Act:
    """Jobs that are ready, running, parked and dead."""
    operator(now)
    ids = now.enqueued(1, delay=30, key=now.queue, key_until="finished")
    ids += [job.job_id for job in now.claimed(1)]
    ids += parked(now) + now.ended(End.REJECTED, bury=True)
    now.ends = ["cancelled"] * 4
    return lambda: cancel(ids)


def requeueing(now: Round) -> Act:
    """Dead and cancelled jobs; one wins its key back, another's belongs to a live job by now."""
    operator(now)
    ids = now.ended(End.REJECTED, bury=True) + now.ended(End.CANCELLED)
    free, taken = ({"key": f"{n} {now.queue}", "key_until": "finished"} for n in range(2))
    ids += now.ended(End.REJECTED, **free) + now.ended(End.REJECTED, **taken)
    now.before = dict.fromkeys(ids[:3], 1)
    now.enqueued(1, delay=30, **taken)
    now.ends = ["done", "done", "done", "dead", "done"]
    return lambda: requeue(ids)


def rescheduling(now: Round) -> Act:
    operator(now)
    ids = now.enqueued(2, delay=3600)
    return lambda: reschedule(ids, delay=1)


def erasing(now: Round) -> Act:
    operator(now)
    ids = now.ended(End.COMPLETED) + now.ended(End.REJECTED, bury=True)
    now.ends = ["done", "dead"]

    def check() -> None:
        rows = Job.objects.filter(pk__in=ids).values_list("payload", "lease_until")
        assert list(rows) == [({}, None), ({}, None)]

    now.checks.append(check)
    return lambda: erase(ids)


def pausing(now: Round) -> Act:
    """Paused and resumed, it runs: its job is done in the end."""
    operator(now)
    now.enqueued(1)

    def act() -> None:
        pause(now.queue)
        resume(now.queue)

    def check() -> None:
        assert Queue.objects.get(name=now.queue).paused_at is None

    now.checks.append(check)
    return act


def pruning(now: Round) -> Act:
    """Old jobs go with their attempts and effects, or stay with them."""
    prunable(now)
    old: dict[str, Any] = {"queue": now.queue, "older_than": 0, "pause": 0}

    def act() -> None:
        prune(**old, dry_run=True)
        prune(**old, batch=2)

    return act


def pruning_to_an_archive(now: Round) -> Act:
    """What is gone is in the archive: more than once at worst, where an answer was lost."""
    ids = prunable(now)
    file = Path(tempfile.mkdtemp(prefix="leasequeue-sweep-")) / "jobs.gz"

    def check() -> None:
        with gzip.open(file, "rt") as lines:
            assert {json.loads(line)["job"]["id"] for line in lines} == set(ids)
        file.unlink()
        file.parent.rmdir()

    now.checks.append(check)
    return lambda: prune(queue=now.queue, older_than=0, batch=2, pause=0, archive=file)


def prunable(now: Round) -> list[int]:
    operator(now)
    ids = now.ended(End.COMPLETED, 2) + now.ended(End.CANCELLED)
    JobEffect(job_id=ids[0], name="row", number=1).save(force_insert=True)
    now.ends = []

    def check() -> None:
        assert not JobAttempt.objects.filter(job_id__in=ids).exists()
        assert not JobEffect.objects.filter(job_id__in=ids).exists()

    now.checks.append(check)
    return ids


def requeueing_in_bulk(now: Round) -> Act:
    """A run that is there goes on; each job is requeued once by it."""
    return in_bulk(now, lambda ids: JobFilter(queue=now.queue), requeue_many)


def requeueing_named_ones_in_bulk(now: Round) -> Act:
    """One of them is done already: it is left out."""
    done = now.ended(End.COMPLETED)
    return in_bulk(now, lambda ids: JobFilter(ids=done + ids), requeue_many)


def cancelling_in_bulk(now: Round) -> Act:
    return in_bulk(now, lambda ids: JobFilter(queue=now.queue), cancel_many)


def in_bulk(now: Round, wanted: Callable[[list[int]], JobFilter], work: Callable[..., Any]) -> Act:
    operator(now)
    ids = now.ended(End.REJECTED, 3)
    now.ends[-3:] = ["done"] * 3 if work is requeue_many else ["cancelled"] * 3
    now.before = dict.fromkeys(ids, 1) if work is requeue_many else {}

    def act() -> None:
        started = BulkRun.objects.filter(by=now.queue).last()
        if started is None:
            work(wanted(ids), by=now.queue)
        elif started.state == "running":
            go_on(started.pk)

    return act


def signing(now: Round) -> Act:
    """At the roll-out of a key: what is not signed is signed by it."""
    operator(now)
    now.enqueued(2)
    signed = {**settings.LEASEQUEUE, "SIGNING_KEYS": [KEY]}

    def act() -> None:
        with override_settings(LEASEQUEUE=signed):
            resign(Selection(queue=now.queue))

    def check() -> None:
        assert all(Job.objects.filter(queue_name=now.queue).values_list("signature", flat=True))

    now.checks.append(check)
    return act


def operator(now: Round) -> None:
    """Whoever calls hears of an error, and calls again."""
    now.raises = now.repeats = True


def parked(now: Round) -> list[int]:
    ids = now.ended(End.PARKED)
    now.unrecorded |= set(ids)
    return ids


CASES: list[Case] = [
    cancelling,
    requeueing,
    rescheduling,
    erasing,
    pausing,
    pruning,
    pruning_to_an_archive,
    requeueing_in_bulk,
    requeueing_named_ones_in_bulk,
    cancelling_in_bulk,
    signing,
]
