"""The sweep over statements: an operation with each of them broken in turn, and what holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.transaction import CommitUnknown
from django_leasequeue.models import Job
from tests.faults import Fault, moved, severs
from tests.faults.statements import When
from tests.sweep.chance import AGAIN, WHOLE
from tests.sweep.kills import Death, run_in_a_process
from tests.sweep.rounds import LEASE, Attempt, Case, Round
from tests.waiting import wait_until

WHEN: tuple[When, When] = ("before", "after")
#: What a worker's loop, or whoever enqueues, gets when no repeating has helped.
ESCAPING = (DatabaseError, InterfaceError, CommitUnknown)

Break = Callable[[Any], AbstractContextManager[Any]]


@contextmanager
def noting(text: str) -> Iterator[None]:
    """Say with an error which statement was broken, and how to have it broken again."""
    try:
        yield
    except BaseException as error:
        error.add_note(text if WHOLE else f"{text}\n{AGAIN}")
        raise


@dataclass
class Twice:
    """A fault, and after it another one, which counts the statements from there on."""

    first: Fault
    second: Fault

    @property
    def seen(self) -> list[str]:
        """All statements, in order."""
        return self.first.seen + self.second.seen

    def run(self, connection: BaseDatabaseWrapper, sql: str, statement: Callable[[], Any]) -> Any:
        """Run `statement`, broken if it is its turn."""
        fault = self.second if self.first.fired else self.first
        return fault.run(connection, sql, statement)


@dataclass
class Sweep:
    """Breaks every statement of a case in turn; `breaking` says on which connections.

    All of it, or with errors that are drawn by lot from `codes`.
    """

    connection: BaseDatabaseWrapper
    attempt: Attempt
    breaking: Break
    codes: Sequence[Any]
    lot: Random

    def one_error(self, case: Case, *, for_good: bool = False) -> None:
        """Break one statement a round, from the first to the last, before and after; then look.

        `for_good`: and all that come after it, and what is raised in the end reaches the caller.
        """
        whole, unbroken = self.unbroken(case)
        rounds = {"no statement": whole}
        places = self._places(len(unbroken.seen), few=for_good)
        for at, when, code in places:
            fault = Fault(code, at=at, when=when, times=100 if for_good else 1)
            place = f"{code} {when} statement {at}: {unbroken.seen[at - 1]}"
            with noting(place):
                rounds[place] = self._break(case, fault, for_good=for_good)
                assert fault.fired, f"never met among {fault.seen}"
        self.work_off(rounds)

    def after_a_commit(self, case: Case, lost: Sequence[Any]) -> None:
        """Lose the answer to each COMMIT, then break each statement that follows; then look."""
        rounds: dict[str, Round] = {}
        _, unbroken = self.unbroken(case)
        commits = [at for at, sql in enumerate(unbroken.seen, start=1) if sql == "COMMIT"]
        places = [*itertools.product(commits, WHEN)]
        for at, when in self._some(places):
            code = self.lot.choice(lost)
            with noting(f"{code} {when} COMMIT {at}"):
                self._after_one(case, Fault(code, at=at, when=when), rounds)
        self.work_off(rounds)

    def _after_one(self, case: Case, first: Fault, rounds: dict[str, Round]) -> None:
        place = f"{first.code} {first.when} COMMIT {first.at}"
        watch = Fault(None, at=0)
        rounds[place] = self._break(case, Twice(replace(first), watch))
        following = range(1, len(watch.seen) + 1)
        everything = [*itertools.product(following, WHEN, self._kinds())]
        for number, when, code in self._some(everything, 1):
            name = f"{place}, {code} {when} {watch.seen[number - 1]}"
            # A session that was cut off keeps its row locked for longer in one run than in
            # another, and what steps aside for that sends fewer statements.
            runs = [Fault(code, at=number, when=when) for _ in range(3)]
            for run, second in enumerate(runs):
                faults = Twice(replace(first, seen=[]), second)
                rounds[f"{name}, run {run}"] = self._break(case, faults, for_good=True)
                if second.fired:
                    break
            assert any(second.fired for second in runs), f"{name}: never met by {runs}"

    def deaths(self, case: Case) -> None:
        """Kill the process at each statement, before and after it; then look."""
        whole = Round(self.connection, self.attempt)
        seen = run_in_a_process(case(whole), Death(at=0))
        rounds = {"nobody killed": whole}
        for at, when in self._some([*itertools.product(range(1, len(seen) + 1), WHEN)], 3):
            place = f"killed {when} statement {at}: {seen[at - 1]}"
            with noting(place):
                rounds[place] = now = Round(self.connection, self.attempt, crashed=True)
                act = case(now)
                run_in_a_process(act, Death(at, when))
                if now.repeats:
                    act()
        self.work_off(rounds)

    def statements(self, case: Case, lost: Sequence[Any]) -> list[str]:
        """Return the statements of a case as it is, and those after each COMMIT left unanswered."""
        _, unbroken = self.unbroken(case)
        seen = [*unbroken.seen]
        for at, sql in enumerate(unbroken.seen, start=1):
            if sql == "COMMIT" and lost:
                faults = Twice(Fault(lost[0], at=at, when="after"), Fault(None, at=0))
                self._break(case, faults, for_good=True)
                seen += faults.seen
        return seen

    def unbroken(self, case: Case) -> tuple[Round, Fault]:
        """Run a case as it is; return it, and a fault that has seen its statements."""
        fault = Fault(self.codes[0], at=0)
        now = self._break(case, fault)
        assert fault.seen
        return now, fault

    def _places(self, count: int, *, few: bool) -> list[tuple[int, When, Any]]:
        """Return which statement is broken, when and with which code; in a sample each once."""
        every = range(1, count + 1)
        if WHOLE:
            return [*itertools.product(every, WHEN, self.codes)]
        drawn = [(at, self.lot.choice(WHEN), self.lot.choice(self.codes)) for at in every]
        return self.lot.sample(drawn, min(2, count)) if few else drawn

    def _kinds(self) -> Sequence[Any]:
        """Return one code that ends the session, and one that leaves it as it is."""
        kinds = [[code for code in self.codes if severs(code) is ends] for ends in (True, False)]
        return [self.lot.choice(kind) for kind in kinds if kind]

    def _some(self, places: Sequence[Any], most: int = 2) -> Sequence[Any]:
        return places if WHOLE else self.lot.sample(places, min(most, len(places)))

    def _break(self, case: Case, fault: Fault | Twice, *, for_good: bool = False) -> Round:
        now = Round(self.connection, self.attempt)
        act = case(now)
        passing = ESCAPING if for_good or now.raises else ()
        now.crashed = True
        with self.breaking(fault), suppress(*passing):
            act()
            now.crashed = False
        if now.crashed:
            self.connection.close_if_unusable_or_obsolete()  # as Django does after a request
            if now.repeats:
                act()
        return now

    def work_off(self, rounds: dict[str, Round]) -> None:
        """Let a lease and ten seconds go by, recover, run whatever is due; ask the invariants."""
        with moved(self.connection, LEASE + 10):
            wait_until(self._recovered, message="reserved after lease + 10 s")
            for place, now in rounds.items():
                with noting(place):
                    wait_until(now.work_off, message="a job that nobody can run")
                    for step in now.later:
                        step()
        self._verify(rounds.items())

    def _verify(self, rounds: Iterable[tuple[str, Round]]) -> None:
        for place, now in rounds:
            with noting(place):
                now.verify()

    def _recovered(self) -> bool:
        recover_batch(self.connection)
        return not Job.objects.filter(status="reserved").exists()
