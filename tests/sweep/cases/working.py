"""What a worker does to jobs: claim, renew, settle each outcome, recover, look, park and wake."""

from __future__ import annotations

from collections.abc import Callable

from django_leasequeue.core import drain
from django_leasequeue.core.attempts import last_end
from django_leasequeue.core.bury import any_unburied
from django_leasequeue.core.lease import Standing, renew, standing
from django_leasequeue.core.park import wake
from django_leasequeue.core.progress import save_progress
from django_leasequeue.core.recover import any_expired, recover_batch
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from tests.core.arrange import claim_jobs, expire, write
from tests.sweep.rounds import LEASE, PLAIN, Case, Round
from tests.waiting import wait_until

Act = Callable[[], object]
#: Job types whose rows the database refuses to reserve, and to have.
UNRESERVED, UNWRITTEN = "sweep.unreserved", "sweep.unwritten"


def claiming(now: Round) -> Act:
    """A claim that meets jobs to run, one whose attempts are used up and one that has expired."""
    now.enqueued(2)
    (used_up,) = now.enqueued(1)
    now.enqueued(1, expires=0)
    now.ends = ["done", "done", "dead", "cancelled"]
    now.given[used_up] = 5
    write(now.connection, used_up, attempts=5)
    return lambda: now.claim(4)


def claiming_lane_by_lane(now: Round) -> Act:
    """A claim that goes on to the next priority, under another token."""
    now.enqueued(2, priority=1)
    now.enqueued(1)
    return lambda: now.claim(4)


def claiming_from_every_queue(now: Round) -> Act:
    """Whatever queue has its turn; who claims what another round has left, lets it expire."""
    now.enqueued(1)
    return lambda: claim_jobs(now.connection, 1, lease=LEASE)


def claiming_what_is_refused(now: Round) -> Act:
    """A job that the database refuses to reserve is dead, and keeps nobody from the others."""
    (refused,) = now.enqueued(1)
    write(now.connection, refused, job_type=UNRESERVED)
    now.enqueued(1)
    now.ends = ["dead", "done"]
    return lambda: now.claim(2)


def renewing(now: Round) -> Act:
    leases = [job.lease for job in now.claimed(3)]

    def act() -> None:
        assert renew(now.connection, leases, LEASE).lost == ()

    return act


def looking(now: Round) -> Act:
    """What a worker asks about jobs, without writing."""
    jobs = now.claimed(2)
    ids = [job.job_id for job in jobs]
    now.settle(Ending(jobs[0].lease, Outcome(End.FAILED, delay=1)))
    expire(now.connection, jobs[1].job_id)
    leases = [job.lease for job in jobs]

    def act() -> None:
        wait_until(lambda: set(standing(now.connection, leases).values()) == {Standing.LOST})
        assert drain.waiting_retries(now.connection, ids, 60) == {ids[0]}
        assert drain.anything_reserved(now.connection, (now.queue,))
        assert any_expired(now.connection)
        any_unburied(now.connection)
        assert last_end(now.connection, ids[0])[0] == "failed"

    return act


def telling_progress(now: Round) -> Act:
    jobs = now.claimed(2)
    texts = {job.lease: f'{{"text": "{job.job_id}"}}' for job in jobs}

    def act() -> None:
        while texts.keys() - save_progress(now.connection, texts):
            pass

    def check() -> None:
        for job in Job.objects.filter(queue_name=now.queue):
            assert job.progress == {"text": str(job.pk)} or (now.crashed and not job.progress)

    now.checks.append(check)
    return act


def settling(now: Round) -> Act:
    """Several at once, as a worker's turn has them; two share one statement."""
    outcomes = [
        Outcome(End.COMPLETED, result='{"a":1}'),
        Outcome(End.COMPLETED, result='{"a":1}'),
        Outcome(End.FAILED, error=ErrorSummary("E", "E"), delay=1),
        Outcome(End.SNOOZED, delay=1),
    ]
    jobs = now.claimed(4)
    endings = [Ending(job.lease, outcome) for job, outcome in zip(jobs, outcomes, strict=True)]
    return lambda: settled(now, endings)


def settled(now: Round, endings: list[Ending]) -> None:
    lost = [
        ending
        for ending, verdict in zip(endings, now.settle(*endings), strict=True)
        if verdict is Verdict.LOST
    ]
    # An error after a COMMIT that tells of no lost answer is none that a server gives: of what
    # leaves no row nobody can say any more that it is settled.
    assert not [ending for ending in lost if ending.outcome.recorded]


def settling_what_is_lost(now: Round) -> Act:
    """Whoever comes too late writes nothing."""
    (job,) = now.claimed(1)
    expire(now.connection, job.job_id)

    def act() -> None:
        (found,) = settle(now.connection, [Ending(job.lease, Outcome(End.REJECTED))])
        assert found.verdict is Verdict.LOST

    return act


def settling_as(outcome: Outcome, ends: str, name: str) -> Case:
    """Return the case of one outcome, of a job that has a key until it is finished."""

    def case(now: Round) -> Act:
        (job,) = now.claimed(1, key=now.queue, key_until="finished")
        now.ends = [ends]
        if not outcome.recorded:
            now.unrecorded.add(job.job_id)
        return lambda: settled(now, [Ending(job.lease, outcome)])

    case.__name__ = f"settling_{name}"
    return case


def recovering(now: Round) -> Act:
    nothing_expired(now)
    jobs = now.claimed(2)
    jobs += now.claimed(1, max_attempts=1, key=now.queue, key_until="finished")
    now.ends = ["done", "done", "dead"]
    expire(now.connection, *(job.job_id for job in jobs))
    return lambda: recover_batch(now.connection)


def recovering_what_is_refused(now: Round) -> Act:
    """An attempt that is on record already, as no claim would leave it: the job is dead."""
    nothing_expired(now)
    good, bad = now.claimed(2)
    now.ends = ["done", "dead"]
    row = JobAttempt(job_id=bad.job_id, number=bad.number, token=bad.lease.token, outcome="failed")
    row.save(force_insert=True)
    expire(now.connection, good.job_id, bad.job_id)
    return lambda: recover_batch(now.connection)


def nothing_expired(now: Round) -> None:
    """Recover what another round has left: it is recovered together with this one's."""
    while recover_batch(now.connection):
        pass


def waking(now: Round) -> Act:
    """Parked jobs of a type that is known here are ready again."""
    jobs = now.claimed(2)
    now.settle(*(Ending(job.lease, Outcome(End.PARKED, started=False)) for job in jobs))
    now.unrecorded |= {job.job_id for job in jobs}

    def act() -> None:
        for _pass in range(3):  # what became of a COMMIT without an answer is the next one's
            wake(now.connection, {PLAIN: 1}, [now.queue], 10)

    def woken() -> bool:
        act()  # the rows of a session that was cut off are locked until the server notices
        parked = Job.objects.filter(queue_name=now.queue, status="parked")
        return now.work_off() and not parked.exists()

    now.later.append(lambda: wait_until(woken))
    return act


OUTCOMES = [
    settling_as(Outcome(End.COMPLETED, result="[1]"), "done", "completed"),
    settling_as(Outcome(End.SKIPPED, reason="no"), "done", "skipped"),
    settling_as(Outcome(End.FAILED, delay=1), "done", "failed"),
    settling_as(Outcome(End.TIMED_OUT, delay=1), "done", "timed_out"),
    settling_as(Outcome(End.REJECTED, bury=True), "dead|done", "rejected"),
    settling_as(Outcome(End.CANCELLED), "cancelled|done", "cancelled"),
    settling_as(Outcome(End.CRASHED, delay=1), "done", "crashed"),
    settling_as(Outcome(End.SNOOZED, delay=1), "done", "snoozed"),
    settling_as(Outcome(End.RELEASED), "done", "released"),
    settling_as(Outcome(End.RELEASED, started=False), "done", "released_unstarted"),
    settling_as(Outcome(End.PARKED, started=False), "parked|done", "parked"),
]
CASES: list[Case] = [
    claiming,
    claiming_lane_by_lane,
    claiming_from_every_queue,
    claiming_what_is_refused,
    renewing,
    looking,
    telling_progress,
    settling,
    settling_what_is_lost,
    *OUTCOMES,
    recovering,
    recovering_what_is_refused,
    waking,
]
