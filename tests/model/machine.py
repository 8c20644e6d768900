"""The machine: operations drawn at random, done to the queue and to the model, then compared."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import django_leasequeue as queue_api
from django_leasequeue.core import lanes as core_lanes
from django_leasequeue.core.bury import close_burial, postpone_burial, take_burials
from django_leasequeue.core.lanes import Lanes, parse_queues
from django_leasequeue.core.lease import Lease, renew
from django_leasequeue.core.operate import erase, recover
from django_leasequeue.core.park import wake
from django_leasequeue.core.settle import Ending, Verdict, settle
from django_leasequeue.core.ticking import tick
from django_leasequeue.grid import Rule
from django_leasequeue.models import Job, Schedule
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, run, shift, write
from tests.model.compare import compare
from tests.model.model import TRIES, Modelled

T = TypeVar("T")

TYPE = "model.job"
DAY = 86_400
LONG = 3_600.0
WORKERS = ("a", "b", "a,b")
_TABLES = ("job", "jobattempt", "queue", "schedule")

queues = st.sampled_from(["a", "b"])
delays = st.sampled_from([0.0, LONG])
picks = st.integers(0, 1 << 16)
several = st.lists(picks, min_size=1, max_size=3)
ends = st.sampled_from(
    [
        *((end, True) for end in End if end not in (End.PARKED, End.EXPIRED)),
        (End.RELEASED, False),
        (End.PARKED, False),
    ]
)
several_ends = st.lists(ends, min_size=3, max_size=3)


class Machine(RuleBasedStateMachine):
    """Three workers and an operator, one operation at a time, on one database."""

    connection: ClassVar[BaseDatabaseWrapper]

    @initialize()
    def begin(self) -> None:
        self.jobs: dict[int, Modelled] = {}
        self.before: dict[int, tuple[str, int]] = {}
        self.leases: list[Lease] = []
        self.burials: list[Lease] = []
        self.tokens: set[Lease] = set()
        self.paused: set[str] = set()
        self.schedules: dict[int, Any] = {}
        self.workers = {names: Lanes(parse_queues(names)) for names in WORKERS}
        # Whatever a worker remembers of its lanes is old by its next claim.
        self.moment = 0.0
        self.patch = pytest.MonkeyPatch()
        clock = SimpleNamespace(monotonic=lambda: self.moment)
        self.patch.setattr(core_lanes, "time", clock)
        for queue in ("a", "a", "b"):
            job_id = queue_api.enqueue(TYPE, {}, queue=queue).id
            self.jobs[job_id] = Modelled(job_id, queue)

    def teardown(self) -> None:
        self.patch.undo()
        for table in _TABLES:
            run(self.connection, f"DELETE FROM leasequeue_{table}")

    @invariant()
    def the_queue_is_as_the_model(self) -> None:
        self.before = compare(self.jobs, self.before)

    # Enqueue --------------------------------------------------------------------------------------

    @rule(
        queue=queues,
        key=st.sampled_from([None, "k", "k", "l"]),
        until=st.sampled_from(["forever", "finished", "finished"]),
        priority=st.sampled_from([0, 0, 5]),
        max_attempts=st.integers(1, 5),
        delay=st.sampled_from([0.0, 0.0, 0.0, LONG]),
        outlived=st.sampled_from([False, False, False, True]),
        replace=st.booleans(),
    )
    def enqueue(self, queue, key, until, priority, max_attempts, delay, outlived, replace) -> None:
        options = {"queue": queue, "priority": priority, "max_attempts": max_attempts}
        options |= {"delay": delay} | ({"expires": 0} if outlived else {})
        named = None if key is None else (until, key)
        if key is not None:
            options |= {"key": key, "key_until": until}
            options |= {"on_conflict": "replace"} if replace else {}
        made = queue_api.enqueue(TYPE, {}, **options)
        limits = {"priority": priority, "max_attempts": max_attempts}
        limits |= {"due": delay == 0, "outlived": outlived}
        holder = self._holder(queue, named)
        assert made.created is (holder is None)
        if holder is None:
            self.jobs[made.id] = Modelled(made.id, queue, key=named, **limits)
            return
        assert made.id == holder.id
        if replace and holder.status == "ready":
            vars(holder).update(limits, attempts=0, crashes=0, releases=0)

    def _holder(self, queue: str, key: tuple[str, str] | None) -> Modelled | None:
        found = [job for job in self.jobs.values() if key and (job.queue, job.key) == (queue, key)]
        return next((job for job in found if job.has_key), None)

    @rule(days=st.integers(1, 3))
    def ticks_of_days(self, days: int) -> None:
        name = f"s{len(self.schedules)}"
        schedule = queue_api.add_schedule(name, TYPE, every=DAY, catch_up="all", queue="a")
        first = Rule.of(every=DAY).after(timezone.now() - timedelta(days=days))
        Schedule.objects.filter(pk=schedule.pk).update(next_tick=first)
        self.schedules[schedule.pk] = first

        for _again in range(2):
            self._tick(schedule.pk)

    def _tick(self, number: int) -> None:
        """Each tick that is due once, and none again."""
        now = timezone.now()
        made = [ticked.job_id for ticked in tick(self.connection, number)]
        moment, wanted = self.schedules[number], 0
        while moment <= now:
            moment, wanted = moment + timedelta(days=1), wanted + 1
        self.schedules[number] = moment
        assert len(made) == len(set(made)) == wanted
        assert None not in made
        for job_id in made:
            assert job_id is not None
            self.jobs[job_id] = Modelled(job_id, "a")

    # Workers --------------------------------------------------------------------------------------

    @rule(limit=st.integers(1, 3))
    def claim_anything(self, limit: int) -> None:
        self._claim("a,b", limit)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 3))
    def claim(self, worker: str, limit: int) -> None:
        self._claim(worker, limit)

    def _claim(self, worker: str, limit: int) -> None:
        """The first that are due, of the best lanes: no more, no others, in order."""
        self.moment += 1_000
        wanted = self._due(worker.split(","), limit)
        taken = claim_jobs(self.connection, limit, lanes=self.workers[worker], worker=worker)
        assert [job.job_id for job in taken] == wanted
        for job in taken:
            assert job.lease not in self.tokens, "a token was drawn twice"
            self.tokens.add(job.lease)
            self.leases.append(job.lease)
            model = self.jobs[job.job_id]
            model.claim(job.lease.token)
            assert (job.number, job.attempt) == (model.claims, model.attempts)

    def _due(self, names: Iterable[str], limit: int) -> list[int]:
        """Return the ids that a claim is to take; what it ends on its way is ended here."""
        times = dict(Job.objects.values_list("pk", "available_at"))
        due = [
            job
            for job in self.jobs.values()
            if job.status == "ready" and job.due and job.queue not in self.paused
        ]
        lanes = [(name, priority) for name in names for priority in (5, 0)]
        wanted: list[int] = []
        for lane in lanes:
            here = [job for job in due if (job.queue, job.priority) == lane]
            here.sort(key=lambda job: (times[job.id], job.id))
            while here:
                first, here = here[: limit - len(wanted)], here[limit - len(wanted) :]
                ended = [job for job in first if _ends_unclaimed(job)]
                for job in ended:
                    job.expire_unclaimed()
                if len(ended) < len(first):
                    full = len(wanted) + len(first) == limit
                    wanted += [job.id for job in first if job not in ended]
                    if full:  # what is left here goes before other lanes
                        return wanted
                    break
        return wanted

    @precondition(lambda self: self.leases)
    @rule(chosen=several)
    def renew(self, chosen: list[int]) -> None:
        wanted = self._leases(chosen)
        found = renew(self.connection, wanted, LONG)
        held = {lease for lease in wanted if lease in self.tokens and self._holds(lease)}
        assert set(found.renewed) == held
        assert set(found.lost) == set(wanted) - held

    @precondition(lambda self: self._held())
    @rule(chosen=several, how=several_ends, delay=delays, bury=st.booleans())
    def settle_what_is_held(
        self, chosen: list[int], how: list[Any], delay: float, bury: bool
    ) -> None:
        held = self._held()
        self._settle(sorted({_picked(held, pick) for pick in chosen}), how, delay, bury)

    @precondition(lambda self: self._held())
    @rule(pick=picks, releases=st.integers(18, 21))
    def many_deploys(self, pick: int, releases: int) -> None:
        """It was released so often before that one more release costs an attempt, or nearly so."""
        lease = _picked(self._held(), pick)
        self.jobs[lease.job_id].releases = releases
        write(self.connection, lease.job_id, releases=releases)
        self._settle([lease], [(End.RELEASED, True)], 0, bury=False)

    @precondition(lambda self: self._held())
    @rule(pick=picks)
    def crash(self, pick: int) -> None:
        self._settle([_picked(self._held(), pick)], [(End.CRASHED, True)], 0, bury=True)

    @precondition(lambda self: self.leases)
    @rule(chosen=several, how=several_ends, delay=delays, bury=st.booleans())
    def settle_anything(self, chosen: list[int], how: list[Any], delay: float, bury: bool) -> None:
        self._settle(self._leases(chosen), how, delay, bury)

    def _settle(self, leases: list[Lease], how: list[Any], delay: float, bury: bool) -> None:
        """Whoever holds its lease writes its end, others nothing."""
        endings = [
            Ending(lease, Outcome(end, delay=delay, started=started, bury=bury))
            for lease, (end, started) in zip(leases, how, strict=False)
        ]
        for ending, settled in zip(endings, settle(self.connection, endings), strict=True):
            lease, outcome = ending
            if self._holds(lease):
                assert settled.verdict is Verdict.SETTLED
                job = self.jobs[lease.job_id]
                job.end(outcome.end.value, started=outcome.started, delay=delay, bury=bury)
                assert settled.status == job.status
            else:
                stands = self._on_record(lease) in (outcome.end.value, "completed", "skipped")
                assert settled.verdict is (Verdict.SETTLED if stands else Verdict.LOST)

    def _held(self) -> list[Lease]:
        return [lease for lease in self.leases if self._holds(lease)]

    def _leases(self, chosen: list[int]) -> list[Lease]:
        newest = self.leases[-8:]
        # Not by token, which is another one in each run of a history.
        return [newest[place] for place in sorted({pick % len(newest) for pick in chosen})]

    def _holds(self, lease: Lease) -> bool:
        job = self.jobs.get(lease.job_id)
        return job is not None and job.holds(lease.token)

    def _on_record(self, lease: Lease) -> str | None:
        job = self.jobs.get(lease.job_id)
        rows = job.rows if job else []
        return next((row.outcome for row in rows if row.token == lease.token), None)

    @precondition(lambda self: self._running())
    @rule(chosen=several)
    def run_out(self, chosen: list[int]) -> None:
        """Leases, or those of burials, are not renewed in time."""
        running = self._running()
        for job in [_picked(running, pick) for pick in chosen]:
            shift(self.connection, job.id, "lease_until", -1)
            job.unexpired = False

    def _running(self) -> list[Modelled]:
        return [job for job in self.jobs.values() if job.unexpired]

    @rule()
    def recover(self) -> None:
        expired = [
            job for job in self.jobs.values() if job.status == "reserved" and not job.unexpired
        ]
        assert recover() == len(expired)
        for job in expired:
            job.end("expired", bury=True)

    @rule(queue=queues, limit=st.integers(1, 3))
    def wake(self, queue: str, limit: int) -> None:
        parked = {
            job.id for job in self.jobs.values() if (job.status, job.queue) == ("parked", queue)
        }
        assert wake(self.connection, {TYPE: 1}, [queue], limit) == min(limit, len(parked))
        for job_id in Job.objects.filter(pk__in=parked, status="ready").values_list(
            "pk", flat=True
        ):
            self.jobs[job_id].wake()

    # Burials --------------------------------------------------------------------------------------

    @rule(worker=st.sampled_from(WORKERS))
    def take_burial(self, worker: str) -> None:
        self._take_burial(worker)

    @precondition(lambda self: any(job.waits for job in self._all()))
    @rule(times=st.integers(1, 4))
    def fail_burials(self, times: int) -> None:
        """Each hook that is tried fails at once."""
        for _time in range(times):
            for lease in self._take_burial("a"):
                assert postpone_burial(self.connection, lease, 0)
                self.jobs[lease.job_id].end_burial(waits=True)

    def _take_burial(self, worker: str) -> list[Lease]:
        """One at a time, three tries at most; then it is closed."""
        waiting = [job for job in self.jobs.values() if job.waits and not job.unexpired]
        tried = [job for job in waiting if job.bury_tries >= TRIES]
        taken = take_burials(
            self.connection, with_hook=[TYPE], without_hook=[], worker=worker, seconds=LONG
        )
        for job in tried:
            job.end_burial(waits=False)
        assert len(taken) == min(1, len(waiting) - len(tried))
        for one in taken:
            model = self.jobs[one.job_id]
            assert model in waiting and model not in tried
            assert one.lease not in self.tokens
            self.tokens.add(one.lease)
            self.burials.append(one.lease)
            model.take_burial(one.lease.token)
        return [one.lease for one in taken]

    @precondition(lambda self: self.burials)
    @rule(pick=picks, how=st.sampled_from(["close", "postpone", "untried"]))
    def end_burial(self, pick: int, how: str) -> None:
        lease = self.burials[pick % len(self.burials)]
        job = self.jobs.get(lease.job_id)
        held = job is not None and job.waits and job.token == lease.token and job.unexpired
        if how == "close":
            ended = close_burial(self.connection, lease)
        else:
            ended = postpone_burial(self.connection, lease, 0, tried=how == "postpone")
        assert ended is held
        if held:
            assert job is not None
            job.end_burial(waits=how != "close", tried=how != "untried")

    # The operator ---------------------------------------------------------------------------------

    @precondition(lambda self: self.jobs)
    @rule(
        what=st.sampled_from(["cancel", "reschedule", "erase", "use_up"]),
        chosen=several,
        delay=delays,
    )
    def operate(self, what: str, chosen: list[int], delay: float) -> None:
        if what == "reschedule":
            self._reschedule(chosen, delay)
        else:
            getattr(self, f"_{what}")(chosen)

    def _cancel(self, chosen: list[int]) -> None:
        wanted = [job for job in self._named(chosen) if job.status not in ("done", "cancelled")]
        assert queue_api.cancel(self._ids(chosen)) == [job.id for job in wanted]
        for job in wanted:
            job.cancel()

    def _reschedule(self, chosen: list[int], delay: float) -> None:
        wanted = [job for job in self._named(chosen) if job.status == "ready"]
        assert queue_api.reschedule(self._ids(chosen), delay=delay) == [job.id for job in wanted]
        for job in wanted:
            job.due = delay == 0

    def _erase(self, chosen: list[int]) -> None:
        wanted = [job for job in self._named(chosen) if job.final]
        assert erase(self._ids(chosen)) == [job.id for job in wanted]
        for job in wanted:
            job.end_burial(waits=False)

    def _use_up(self, chosen: list[int]) -> None:
        """Another program has written the counters: a claim that meets it lets it die."""
        job = self._named(chosen)[0]
        if job.status == "ready":
            job.attempts = job.max_attempts
            write(self.connection, job.id, attempts=job.attempts)

    @precondition(lambda self: any(job.status in ("dead", "cancelled") for job in self._all()))
    @rule(chosen=several)
    def requeue(self, chosen: list[int]) -> None:
        """All but those whose key another job has by now."""
        stopped = [job for job in self._all() if job.status in ("dead", "cancelled")]
        named = sorted({_picked(stopped, pick).id for pick in chosen})
        done = queue_api.requeue(named)
        wanted = []
        for job in map(self.jobs.__getitem__, named):
            finished = job.key is not None and job.key[0] == "finished"
            if not (finished and self._holder(job.queue, job.key)):
                job.requeue()
                wanted.append(job.id)
        assert sorted(done) == wanted

    @rule(queue=queues, what=st.sampled_from(["pause", "resume", "resume", "prune", "prune dead"]))
    def keep_house(self, queue: str, what: str) -> None:
        if what in ("pause", "resume"):
            self._pause_or_resume(queue, on_hold=what == "pause")
        else:
            self._prune(queue, dead=what == "prune dead")

    def _pause_or_resume(self, queue: str, *, on_hold: bool) -> None:
        changed = (queue_api.pause if on_hold else queue_api.resume)(queue)
        assert changed is ((queue in self.paused) is not on_hold)
        (self.paused.add if on_hold else self.paused.discard)(queue)

    def _prune(self, queue: str, *, dead: bool) -> None:
        """A dead job that waits for its burial stays."""
        statuses = ("dead",) if dead else ("done", "cancelled")
        gone = [
            job
            for job in self._all()
            if job.queue == queue and job.status in statuses and not job.waits
        ]
        pruned = queue_api.prune(queue=queue, status=statuses, older_than=0, pause=0)
        assert (pruned.jobs, pruned.attempts) == (len(gone), sum(len(job.rows) for job in gone))
        for job in gone:
            del self.jobs[job.id]

    def _all(self) -> list[Modelled]:
        return [*self.jobs.values()]

    def _named(self, chosen: list[int]) -> list[Modelled]:
        return [self.jobs[job_id] for job_id in self._ids(chosen)]

    def _ids(self, chosen: list[int]) -> list[int]:
        return sorted({_picked([*self.jobs.values()], pick).id for pick in chosen})


def _ends_unclaimed(job: Modelled) -> bool:
    return job.attempts >= job.max_attempts or job.outlived


def _picked(things: list[T], pick: int) -> T:
    return things[pick % len(things)]
