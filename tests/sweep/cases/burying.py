"""Burials: a dead job is taken for its `failed` hook, closed or postponed; at most three tries."""

from __future__ import annotations

from collections.abc import Callable

from django_leasequeue.core.bury import close_burial, postpone_burial, take_burials
from django_leasequeue.core.lease import Claimed
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End
from tests.sweep.rounds import LEASE, Case, Round

Act = Callable[[], object]


def burying(now: Round) -> Act:
    """Taken and closed: the hook has had a try, and nothing waits any more."""
    dying(now, with_hook=True)
    return lambda: bury(now)


def postponing(now: Round) -> Act:
    """The hook failed: it has another try later."""
    dying(now, with_hook=True)

    def act() -> None:
        for job in take(now):
            postpone_burial(now.connection, job.lease, 1)

    return act


def closing_without_a_hook(now: Round) -> Act:
    dying(now, with_hook=False)
    return lambda: take(now, with_hook=False)


def dying(now: Round, *, with_hook: bool) -> None:
    """Let a job die of a type of this round alone; nothing of its burial may be left open."""
    now.job_type = f"bury-{now.queue}"
    (job_id,) = now.ended(End.REJECTED, bury=True)
    now.ends = ["dead"]
    now.later.append(lambda: bury(now, with_hook=with_hook))

    def check() -> None:
        row = Job.objects.get(pk=job_id)
        assert (row.lease_until, row.lease_token) == (None, None)
        assert (1 if with_hook else 0) <= row.bury_tries <= (3 if with_hook else 0)

    now.checks.append(check)


def take(now: Round, *, with_hook: bool = True) -> list[Claimed]:
    types = [now.job_type]
    return take_burials(
        now.connection,
        with_hook=types if with_hook else [],
        without_hook=[] if with_hook else types,
        worker="tester",
        seconds=LEASE,
    )


def bury(now: Round, *, with_hook: bool = True) -> None:
    for job in take(now, with_hook=with_hook):
        close_burial(now.connection, job.lease)


CASES: list[Case] = [burying, postponing, closing_without_a_hook]
