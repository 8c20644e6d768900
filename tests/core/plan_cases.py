"""What is explained: each case prepares its rows and returns the one thing that it then does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import cancel, enqueue, enqueue_many, requeue, reschedule
from django_leasequeue.core import attempts, bury, drain, effects, park
from django_leasequeue.core.checkpoint import save_checkpoint
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import Claimed, hold_within, lock_within, renew, standing
from django_leasequeue.core.progress import save_progress
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, finish_within, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, expire, run, running


def due(count: int, **options: Any) -> list[int]:
    return [enqueue("arranged", {"n": n}, **options).id for n in range(count)]


def endings(jobs: list[Claimed], end: End, **options: Any) -> list[Ending]:
    return [Ending(job.lease, Outcome(end, **options)) for job in jobs]


Case = Callable[[BaseDatabaseWrapper], Callable[[], object]]


def claim_from_one_queue(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    due(12, queue="plan-a")
    return lambda: claim_jobs(worker, 10, queues="plan-a")


def claim_from_several_queues(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    due(12, queue="plan-c")
    return lambda: claim_jobs(worker, 10, queues="plan-empty,plan-b,plan-c")


def claim_from_all_queues(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    due(12, queue="plan-d", priority=-10)
    return lambda: claim_jobs(worker, 10, queues="*")


def claim_from_the_last_of_many_priorities(
    worker: BaseDatabaseWrapper,
) -> Callable[[], object]:
    due(12, queue="plan-b", priority=-10)
    return lambda: claim_jobs(worker, 10, queues="plan-b")


def claim_behind_a_mark(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    due(20, queue="plan-a")
    lanes = Lanes(("plan-a",))
    claim_jobs(worker, 10, lanes=lanes)
    return lambda: claim_jobs(worker, 10, lanes=lanes)


def claim_ahead(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    *_others, last = due(20, queue="plan-a")
    run(worker, f"UPDATE leasequeue_job SET crashes = 1 WHERE id = {last}")
    return lambda: claim_jobs(worker, 2, ahead=18, queues="plan-a")


def claim_used_up_and_expired(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    used_up, *_rest = due(3, queue="plan-a")
    run(worker, f"UPDATE leasequeue_job SET attempts = 5 WHERE id = {used_up}")
    due(2, queue="plan-a", expires=0)
    return lambda: claim_jobs(worker, 10, queues="plan-a")


def idle_poll(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    return lambda: claim_jobs(worker, 10, queues="*")


def renewal(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    leases = [job.lease for job in running(worker, 10, queue="plan-r")]
    return lambda: renew(worker, leases, 60)


def renewal_of_what_is_lost(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-r")
    expire(worker, *(job.job_id for job in jobs))
    return lambda: renew(worker, [job.lease for job in jobs], 60)


def standing_of_all_kinds(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-r")
    cancel([job.job_id for job in jobs[:5]])
    return lambda: standing(worker, [job.lease for job in jobs])


def checkpoint(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    (job,) = running(worker, queue="plan-r")

    def work() -> None:
        with worker.cursor() as cursor:
            save_checkpoint(worker, cursor, job.lease, "[1]", 60)

    return work


def progress(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-r")
    return lambda: save_progress(worker, {job.lease: "null" for job in jobs})


def effect(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    (job,) = running(worker, queue="plan-c")

    def work() -> None:
        project = connections["default"]
        with transaction.atomic(), project.cursor() as cursor:
            hold_within(project, cursor, job.lease, 60)
            effects.claim_effect(project, cursor, job.job_id, "charge", job.number)
        effects.effect_stands(worker, job.job_id, "charge", job.number)

    return work


def waking(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-r")
    settle(worker, endings(jobs, End.PARKED, started=False))
    types = {"arranged": 1, "a": 1, "b": 2}
    return lambda: (park.wake(worker, types, ("plan-r",), 5), park.wake(worker, types, ("*",), 5))


def waking_of_nothing(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    return lambda: park.wake(worker, {"arranged": 1, "a": 1}, ("*",), 5)


def settlement(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-s")
    return lambda: settle(worker, endings(jobs, End.COMPLETED, result='{"a":1}'))


def settlement_of_many_kinds(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-s")
    ends = [ending for job, end in zip(jobs, End, strict=False) for ending in endings([job], end)]
    return lambda: settle(worker, ends)


def settlement_of_what_is_lost(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-s")
    settle(worker, endings(jobs, End.FAILED))
    return lambda: settle(worker, endings(jobs, End.COMPLETED))


def recovery(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-x")
    running(worker, 10, queue="plan-y", max_attempts=1)
    expire(worker, *(job.job_id for job in jobs))
    return lambda: recover_batch(worker)


def recovery_of_nothing(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    running(worker, 10, queue="plan-y")
    return lambda: recover_batch(worker)


def burial(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-z")
    settle(worker, endings(jobs, End.REJECTED, bury=True))
    with_hook, without = ["arranged"], ["a", "b", "c"]
    return lambda: [
        (bury.close_burial(worker, job.lease), attempts.last_end(worker, job.job_id))
        for job in bury.take_burials(
            worker, with_hook=with_hook, without_hook=without, worker="w", seconds=60
        )
    ]


def draining(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    jobs = running(worker, 10, queue="plan-z")
    ids = [job.job_id for job in jobs]
    settle(worker, endings(jobs, End.FAILED, delay=5))
    return lambda: (
        drain.anything_reserved(worker, ("plan-nobody", "plan-a")),
        drain.anything_reserved(worker, ("*",)),
        drain.waiting_retries(worker, ids, 60),
    )


def completion(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    (job,) = running(worker, queue="plan-c")

    def work() -> None:
        project = connections["default"]
        with transaction.atomic(), project.cursor() as cursor:
            lock_within(project, job.lease)
            finish_within(project, cursor, job.lease, Outcome(End.COMPLETED))

    return work


def operating(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    ids = due(10, queue="plan-o", delay=60)
    return lambda: (reschedule(ids, delay=90), cancel(ids), requeue(ids))


def taken_keys(worker: BaseDatabaseWrapper) -> Callable[[], object]:
    options = [{"queue": "plan-a", "key": f"taken {n}"} for n in range(10)]
    live = [{**option, "key_until": "finished"} for option in options]
    jobs = [("arranged", {}, option) for option in (*options, *live)]
    enqueue_many(jobs)
    return lambda: (
        enqueue_many(jobs),
        enqueue("arranged", {}, **options[0]),
        enqueue("arranged", {}, **live[0]),
    )


CASES: dict[Case, int] = {
    # The case, and how many rows its greediest statement may read.
    claim_from_one_queue: 40,
    claim_from_several_queues: 40,
    claim_from_all_queues: 40,
    claim_from_the_last_of_many_priorities: 40,
    claim_behind_a_mark: 40,
    claim_ahead: 60,
    claim_used_up_and_expired: 40,
    idle_poll: 30,  # two for each queue, and one statement asks of all of them
    renewal: 40,
    renewal_of_what_is_lost: 40,
    standing_of_all_kinds: 40,
    checkpoint: 5,
    progress: 40,
    effect: 5,
    waking: 40,
    waking_of_nothing: 5,
    settlement: 40,
    settlement_of_many_kinds: 40,
    settlement_of_what_is_lost: 60,
    recovery: 40,
    recovery_of_nothing: 5,
    burial: 40,
    draining: 40,
    completion: 5,
    operating: 40,
    taken_keys: 60,
}
