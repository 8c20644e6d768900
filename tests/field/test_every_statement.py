"""Every error of the protocol at every statement and COMMIT, before and after the server did it.

A4, A7: deadlock, lock wait, snapshot conflict and lost connection kill no worker, lose no job,
leave none reserved, and never commit an effect twice or without `done`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import DatabaseError, InterfaceError, connections, transaction
from django.utils import timezone

from django_leasequeue import add_schedule, enqueue, enqueue_many
from django_leasequeue.core import attempts, reading
from django_leasequeue.core import transaction as core_transaction
from django_leasequeue.core.declared import sync_declared
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.core.ticking import tick
from django_leasequeue.declaration import Declaration
from django_leasequeue.grid import Rule
from django_leasequeue.models import Job, Schedule
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from reports.models import GeneratedReport
from tests.core.arrange import expire, write
from tests.faults import broken, broken_everywhere, codes_for
from tests.field.sweep import LEASE, PLAIN, Case, Round, Sweep
from tests.waiting import wait_until

Act = Callable[[], object]
CODES = codes_for(connections["default"])


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between two tries are for rivals, and here there are none."""
    for module in (core_transaction, attempts, reading):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture
def sweep(connection, attempt, declare) -> Callable[..., Sweep]:
    def effect(context, n):
        key = f"{context.job_id}-{context.claims}"
        values = {"tenant_id": f"job-{context.job_id}", "report_month": "2042-01"}
        GeneratedReport.objects.create(idempotency_key=key, result_json={}, **values)

    @declare("sweep.complete", takes_context=True)
    def complete(context, n):
        with context.complete({"n": n}):
            effect(context, n)

    declare("sweep.atomic", takes_context=True, atomic=True)(effect)
    return partial(Sweep, connection, attempt)


# The operations: each prepares its jobs and returns what is to be broken --------------------------


def claiming(now: Round) -> Act:
    """A claim that meets jobs to run, one whose attempts are used up and one that has expired."""
    now.enqueued(2)
    (used_up,) = now.enqueued(1)
    now.enqueued(1, expires=0)
    now.ends = ["done", "done", "dead", "cancelled"]
    write(now.connection, used_up, attempts=5)
    return lambda: now.claim(4)


def renewing(now: Round) -> Act:
    leases = [job.lease for job in now.claimed(3)]

    def act() -> None:
        assert renew(now.connection, leases, LEASE).lost == ()

    return act


def settling(now: Round) -> Act:
    outcomes = [
        Outcome(End.COMPLETED, result='{"a":1}'),
        Outcome(End.COMPLETED, result='{"a":1}'),
        Outcome(End.FAILED, error=ErrorSummary("E", "E"), delay=1),
        Outcome(End.SNOOZED, delay=1),
    ]
    jobs = now.claimed(4)
    endings = [Ending(job.lease, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]

    def act() -> None:
        assert Verdict.LOST not in {settled.verdict for settled in settle(now.connection, endings)}

    return act


def recovering(now: Round) -> Act:
    jobs = now.claimed(2) + now.claimed(1, max_attempts=1)
    now.ends = ["done", "done", "dead"]
    expire(now.connection, *(job.job_id for job in jobs))
    return lambda: recover_batch(now.connection)


def enqueueing_one(now: Round) -> Act:
    now.ends = ["done"]
    return lambda: enqueue(PLAIN, {"n": 1}, queue=now.queue)


def enqueueing_a_key(now: Round) -> Act:
    return lambda: enqueue_twice(now, key=now.queue)


def enqueueing_a_key_until_finished(now: Round) -> Act:
    return lambda: enqueue_twice(now, key=now.queue, key_until="finished")


def enqueueing_a_replacement(now: Round) -> Act:
    return lambda: enqueue_twice(now, key=now.queue, on_conflict="replace")


def enqueue_twice(now: Round, **options: Any) -> None:
    now.ends = ["done"]
    options["queue"] = now.queue
    first, second = (enqueue(PLAIN, {"n": n}, **options) for n in range(2))
    assert (first.id, second.created) == (second.id, False)


def enqueueing_many(now: Round) -> Act:
    taken = {"queue": now.queue, "key": now.queue}
    live = {"queue": now.queue, "key": f"live {now.queue}", "key_until": "finished"}
    now.enqueued(1, key=now.queue)
    now.ends = ["done"] * 5
    options = [taken, live, live, {"queue": now.queue}, {"queue": now.queue}, {**live, "key": "x"}]
    jobs = [(PLAIN, {"n": 1}, option) for option in options]
    return lambda: enqueue_many(jobs)


def enqueueing_in_a_transaction(now: Round) -> Act:
    """The queue repeats nothing of the caller's: row and job are both there, or neither is."""
    now.ends = ["done"] * 2

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


def completing(now: Round) -> Act:
    return run_handler(now, "sweep.complete")


def completing_atomically(now: Round) -> Act:
    return run_handler(now, "sweep.atomic")


def run_handler(now: Round, job_type: str) -> Act:
    now.job_type = job_type
    (job,) = now.claimed(1)
    return lambda: now.run(job)


def ticking(now: Round) -> Act:
    """Each of three ticks has its job in the end, and none has two."""
    now.ends = ["done"] * 3
    schedule = add_schedule(now.queue, PLAIN, every=86_400, catch_up="all", queue=now.queue)
    first = Rule.of(every=86_400).after(timezone.now() - timedelta(days=3))
    Schedule.objects.filter(pk=schedule.pk).update(next_tick=first)

    def taken() -> object:
        """The row of a session that is just ending is locked: the next pass is a second later."""
        return tick(now.connection, schedule.pk) or Schedule.objects.get(pk=schedule.pk).last_tick

    def act() -> None:
        wait_until(taken)

    return act


def declaring(now: Round) -> Act:
    """What code declares is in the database in the end, with the newest rule, and ticks later."""

    def declared(every: int) -> Declaration:
        return Declaration(handler=lambda: None, name=now.queue, every=every)

    sync_declared(now.connection, [declared(86_400)])
    new, changed = f"{now.queue}-new", declared(43_200)

    def act() -> None:
        known = [changed, replace(changed, name=new)]
        wait_until(lambda: not sync_declared(now.connection, known).pending)

    def check() -> None:
        rows = Schedule.objects.filter(name__in=(now.queue, new))
        assert [row.every for row in rows] == [43_200, 43_200]
        assert all(row.next_tick > timezone.now() for row in rows)

    now.checks.append(check)
    return act


CONTROL: list[Case] = [claiming, renewing, settling, recovering]
EFFECTS: list[Case] = [completing, completing_atomically]
ENQUEUE: list[Case] = [
    enqueueing_one,
    enqueueing_a_key,
    enqueueing_a_key_until_finished,
    enqueueing_a_replacement,
    enqueueing_many,
    enqueueing_in_a_transaction,
    ticking,
    declaring,
]


@pytest.mark.parametrize("case", [*CONTROL, *ENQUEUE], ids=lambda case: case.__name__)
def test_one_error(connection, sweep, case):
    sweep(partial(broken, connection)).run(case, CODES)


@pytest.mark.parametrize("case", EFFECTS, ids=lambda case: case.__name__)
def test_one_error_in_a_handler(sweep, case):
    sweep(broken_everywhere).run(case, CODES)


@pytest.mark.parametrize("case", [*CONTROL, *EFFECTS], ids=lambda case: case.__name__)
def test_an_error_for_good(connection, sweep, case):
    """Until the database is back; the worker's loop waits for that, and begins anew."""
    breaking = broken_everywhere if case in EFFECTS else partial(broken, connection)
    sweep(breaking).run(case, [CODES[0], CODES[-1]], for_good=True)
