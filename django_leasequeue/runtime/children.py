"""Children: a crew of processes, each of which runs one handler or some at a time.

A dead child is replaced, and so is one that has run its share or grown too large, between jobs.
A job that crashed before runs alone, in a child of its own that ends afterwards.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from django_leasequeue.runtime.charges import Charge, Ended
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Capacity, Crew, CrewFailed
from django_leasequeue.runtime.handle import Handle
from django_leasequeue.runtime.messages import Ack, Cause, Interrupt
from django_leasequeue.runtime.pace import Pace
from django_leasequeue.runtime.preload import ChildPlan
from django_leasequeue.runtime.wakeup import Wakeup

__all__ = ["Children", "Rules"]

#: Work that a child may have waiting, in seconds of its own running time.
_AHEAD_SECONDS = 0.2
_MOST_AHEAD = 400
#: A job whose turn in its child has not come by then is given back.
_WAIT_SECONDS = 0.8
_START_SECONDS = 15.0
_BOOT_SECONDS = 60.0
#: A child that dies so soon with nothing to do would die again.
_EARLY_SECONDS = 0.5
_MOST_FAILURES = 3
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Rules:
    """How many children there are, and when one is replaced; bytes, 0 for no limit."""

    processes: int
    threads: int
    max_jobs: int = 0
    max_bytes: int = 0


class Children(Crew):
    """The children of one worker."""

    def __init__(self, plan: ChildPlan, rules: Rules, on_kill: Callable[[set[int]], None]) -> None:
        """`on_kill` is called with the database sessions of a child that was killed."""
        self._plan = plan
        self._rules = rules
        self._on_kill = on_kill
        self._children: list[Handle] = []
        self._alone: list[Handle] = []
        self._stopping = False
        self._failures = 0
        self._failed_at = 0.0
        self._pace = Pace()

    @property
    def size(self) -> int:
        return len(self._children) + len(self._alone)

    @property
    def charges(self) -> Sequence[Charge]:
        return [charge for child in self._all() for charge in child.charges.values()]

    def _all(self) -> list[Handle]:
        return [*self._children, *self._alone]

    def capacity(self) -> Capacity:
        if self._failures >= _MOST_FAILURES:  # here, when all that has ended is settled
            raise CrewFailed(
                f"{_MOST_FAILURES} children in a row died before they could run a handler"
            )
        staying = [child for child in self._children if not child.retiring]
        for _ in range(self._rules.processes - len(staying)):
            self._children.append(self._new_child())
        free = ahead = whole = 0
        for child in self._takers():
            share = self._share(child)
            whole += share
            room = self._room(child)
            now = min(room, max(0, self._rules.threads - len(child.charges)))
            free += now
            waiting = max(0, len(child.charges) - self._rules.threads)
            ahead += max(0, min(room - now, share - waiting))
        if not free and ahead * 2 < whole:
            ahead = 0  # what waits lasts for longer than a claim takes
        return Capacity(max(0, free - len(self._alone)), ahead)

    def _new_child(self) -> Handle:
        """Start a child. When the forkserver has just died, another try starts another one."""
        for _ in range(_MOST_FAILURES):
            with suppress(EOFError, OSError):
                return Handle(self._plan)
        raise CrewFailed("no child can be started: the forkserver ends as soon as it is asked")

    def _takers(self) -> list[Handle]:
        """Return the children that may be given a job, the idlest first."""
        takers = [child for child in self._children if child.ready and not child.retiring]
        return sorted(takers, key=lambda child: len(child.charges))

    def _room(self, child: Handle) -> int:
        """Return how many jobs a child may still be given before it is replaced."""
        limit = self._rules.max_jobs
        return limit - child.given if limit else _MOST_AHEAD * self._rules.threads

    def _share(self, child: Handle) -> int:
        """Return how many jobs may wait in a child: what it runs in a fifth of a second.

        Nothing for a thread whose handler has run for longer than that: nobody knows for how much.
        """
        idle = self._rules.threads - child.busy_for(_AHEAD_SECONDS)
        return self._pace.within(_AHEAD_SECONDS * idle, _MOST_AHEAD)

    def occupied(self, seconds: float) -> bool:
        threads, takers = self._rules.threads, self._takers()
        least = threads + 1 + self._pace.within(seconds * threads, _MOST_AHEAD)
        sound = takers and not self._failures
        return bool(sound) and all(len(child.charges) > least for child in takers)

    def give(self, charges: Sequence[Charge]) -> None:
        planned: dict[Handle, list[Charge]] = {child: [] for child in self._takers()}

        held = {child: child.busy_for(_AHEAD_SECONDS) >= self._rules.threads for child in planned}

        def load(child: Handle) -> tuple[bool, bool, int]:
            share = len(planned[child])
            return share >= self._room(child), held[child], share + len(child.charges)

        for charge in charges:
            if charge.job.crashes and not charge.burial:
                self._give_alone(charge)
            else:
                planned[min(planned, key=load)].append(charge)
        for child, share in planned.items():
            free = max(0, self._rules.threads - len(child.charges))
            child.give(share[:free], within=_START_SECONDS)
            child.give(share[free:], within=_WAIT_SECONDS)

    def _give_alone(self, charge: Charge) -> None:
        """Start a child for one job that crashed before: it can harm no other there."""
        child = self._new_child()
        self._alone.append(child)
        child.give([charge], within=_BOOT_SECONDS)

    def collect(self) -> list[Ended]:
        ended: list[Ended] = []
        for child in self._all():
            for end in child.collect():
                ended.append(end)
                self._pace.learn(end)
            if child.began > self._failed_at and _is_sound(child):
                self._failures = 0
            if child.over:
                self._bury(child)
            else:
                self._look_after(child)
        return ended

    def _look_after(self, child: Handle) -> None:
        if child.retiring:
            if not child.charges and ticks() - child.retired_at > _END_SECONDS:
                child.kill()  # it could not end: what a handler has left holds it up
            return
        if child in self._alone:
            if child.ready and not child.charges:
                child.quit()
            return
        rules = self._rules
        used_up = rules.max_jobs and child.given >= rules.max_jobs
        too_large = rules.max_bytes and child.memory > rules.max_bytes
        if too_large:
            child.recall()
        if used_up or too_large:
            child.quit()

    def _bury(self, child: Handle) -> None:
        (self._alone if child in self._alone else self._children).remove(child)
        if child.killed:
            self._on_kill(set(child.sessions.values()))
        if not (child.killed or _is_sound(child)):
            self._failures, self._failed_at = self._failures + 1, ticks()
        child.close()

    def interrupt(self, charge: Charge, cause: Cause) -> None:
        for child in self._with(charge):
            child.interrupt(Interrupt(charge.job.lease, cause))

    def kill(self, charge: Charge) -> None:
        for child in self._with(charge):
            child.kill()

    def _with(self, charge: Charge) -> Iterator[Handle]:
        return (child for child in self._all() if charge.job.lease in child.charges)

    def acknowledge(self, acks: Sequence[Ack]) -> None:
        for child in self._all():
            child.acknowledge(acks)

    def outgrown(self) -> bool:
        return False  # children are replaced one by one

    def stop(self) -> None:
        if self._stopping:
            return
        self._stopping = True
        for child in self._all():
            child.stopping()
            child.recall()

    def wait(self, wakeup: Wakeup, seconds: float, also: int | None = None) -> bool:
        poller = select.poll()
        if also is not None:
            poller.register(also, select.POLLIN)
        poller.register(wakeup.reader, select.POLLIN)
        for child in self._all():
            writes = select.POLLOUT if child.channel.wants_write else 0
            if not child.channel.closed:
                poller.register(child.channel.fileno(), select.POLLIN | writes)
            poller.register(child.sentinel, select.POLLIN)
        ready = poller.poll(max(0.0, seconds) * 1000)
        wakeup.clear()
        return [descriptor for descriptor, _events in ready] == [also]

    def beat(self) -> None:
        """Nothing hangs in control: its own loop does all of this."""

    def close(self, *, hard: bool) -> None:
        children, self._children, self._alone = self._all(), [], []
        for child in children:
            child.kill() if hard else child.quit()
        until = ticks() + _END_SECONDS
        for child in children:
            if not child.join(max(0.0, until - ticks())):
                child.kill()
                child.join(_END_SECONDS)
            child.close()


def _is_sound(child: Handle) -> bool:
    """Tell whether a child has got so far that the next one will, too."""
    idle = child.ready and not child.given
    return child.worked or (idle and ticks() - child.began > _EARLY_SECONDS)
