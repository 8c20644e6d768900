"""A child's handle: control's end of one child process."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from django_leasequeue.core.lease import Lease
from django_leasequeue.runtime.channel import Channel
from django_leasequeue.runtime.charges import Charge, Ended, died, killed
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.messages import (
    Ack,
    Acks,
    Assigned,
    Cause,
    Holding,
    Interrupt,
    Progress,
    Quit,
    Ready,
    Recall,
    Report,
    Session,
    Started,
    Stopping,
    Trust,
)
from django_leasequeue.runtime.orphans import kill_group
from django_leasequeue.runtime.preload import ChildPlan, announced, start_child, without_main
from django_leasequeue.runtime.slots import UNSTARTED

__all__ = ["Handle"]

#: How long word of a start may be on its way.
_UNHEARD_SECONDS = 0.3
#: Longer than any job waits behind another one.
_HUNG_SECONDS = 5.0
#: How often each of the charges is looked at.
_LOOK_SECONDS = 0.02
_PRELOAD = "django_leasequeue.runtime.preload"


class Handle:
    """One child process and the charges it has been given."""

    def __init__(self, plan: ChildPlan) -> None:
        """Start the process; it is `ready` once it says so."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([_PRELOAD])
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours, blocking=False)
        self._process = context.Process(
            target=start_child, args=(theirs, plan), name="leasequeue-child"
        )
        try:
            with theirs, announced(), without_main():
                self._process.start()
        except BaseException:
            ours.close()
            raise
        self.charges: dict[Lease, Charge] = {}
        #: The latest session of each of its threads: numbers of older ones may be others' by now.
        self.sessions: dict[int, int] = {}
        self.began = ticks()
        self.ready = False
        #: A handler has begun in it, or it has given a job back itself.
        self.worked = False
        self.retiring = False
        self.retired_at = 0.0
        self.killed = False
        #: It has ended, and so has all that it was given.
        self.over = False
        self.given = 0
        self.memory = 0
        self._running: dict[Lease, Charge] = {}
        self._look_at = 0.0
        self._trusted: dict[Lease, float] = {}
        self._listened: set[Lease] = set()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid or 0

    @property
    def sentinel(self) -> int:
        """The descriptor that becomes readable when the process has ended."""
        return self._process.sentinel

    def busy_for(self, seconds: float) -> int:
        """Return how many of its handlers have run for longer than so many seconds."""
        before = ticks() - seconds
        return sum(1 for charge in self._running.values() if (charge.started_at or 0.0) < before)

    @property
    def waiting(self) -> list[Charge]:
        """What it has been given and has not started."""
        return [charge for charge in self.charges.values() if charge.started_at is None]

    def give(self, charges: Sequence[Charge], *, within: float) -> None:
        """Hand charges over, in this order, each to start within so many seconds or not at all."""
        if not charges:
            return
        now = ticks()
        for charge in charges:
            charge.given_at, charge.start_by = now, now + within
            self.charges[charge.job.lease] = charge
            self._trusted[charge.job.lease] = charge.assignment.trusted_until
        self.given += len(charges)
        self.channel.send(Assigned(tuple(charge.assignment for charge in charges), now + within))

    def interrupt(self, message: Interrupt) -> None:
        """Tell it to end an attempt."""
        self.channel.send(message)

    def _is_time(self) -> bool:
        """Tell whether to look at each charge again: at a thousand jobs a second not each time."""
        now = ticks()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        return True

    def _tell_trust(self) -> None:
        """Tell it until when its leases are trusted, where that has changed."""
        news = [
            (lease, charge.hold.trusted_until)
            for lease, charge in self.charges.items()
            if charge.hold.trusted_until != self._trusted[lease]
        ]
        if news:
            self._trusted.update(news)
            self.channel.send(Trust(tuple(news)))

    def acknowledge(self, acks: Sequence[Ack]) -> None:
        """Tell it what became of the attempts whose ends somebody there listens to."""
        mine = tuple(ack for ack in acks if ack.lease in self._listened)
        if mine:
            self._listened -= {ack.lease for ack in mine}
            self.channel.send(Acks(mine))

    def recall(self) -> None:
        """Ask for what has not started."""
        self.channel.send(Recall())

    def stopping(self) -> None:
        """Let its handlers know that the worker drains."""
        self.channel.send(Stopping())

    def quit(self) -> None:
        """Let it end when it has nothing left to run; it is given nothing more."""
        if not self.retiring:
            self.retiring = True
            self.retired_at = ticks()
            self.channel.send(Quit())

    def _overdue(self) -> Iterator[Ended]:
        """Take back what was not started in time: what has not said so by now will not start.

        A child that is idle and starts nothing is stopped, or worse: it is replaced. What was only
        to wait in it proves nothing: a receiver of `jobs_claimed` may take as long.
        """
        now = ticks()
        late = [c for c in self.waiting if now > c.start_by + _UNHEARD_SECONDS]
        idle = len(self.waiting) == len(self.charges)
        if idle and any(now - charge.given_at > _HUNG_SECONDS for charge in late):
            self.kill()
        for charge in late:
            yield Ended(self._drop(charge.job.lease), UNSTARTED, 0.0)

    def kill(self) -> None:
        """Kill it with its process group; what it has started ends as killed."""
        if self._process.exitcode is None:
            self.killed = True
            kill_group(self.pid)
            with suppress(ProcessLookupError):
                os.kill(self.pid, 9)

    def collect(self) -> Iterator[Ended]:
        """Return what it has reported, and when it is dead, how the rest ended."""
        dead = self._process.exitcode is not None
        self.channel.flush()
        try:
            messages = self.channel.receive()
        except Exception:  # noqa: BLE001  (what it sends cannot be read: nothing it says counts)
            self.channel.close()
            messages = []
        for message in messages:
            yield from self._on(message)
        if dead:  # as seen before the last look at its messages
            yield from self._rest()
            self.over = True
        else:
            if self._is_time():
                self._tell_trust()
                yield from self._overdue()
            if self.channel.closed:  # it is dying, or says what cannot be understood
                kill_group(self.pid)

    def _on(self, message: Any) -> Iterator[Ended]:
        match message:
            case Ready():
                self.ready = True
            case Session(thread, session_id):
                self.sessions[thread] = session_id
            case Progress(lease, told) if lease in self.charges:
                self.charges[lease].hold.told = told
            case Started(lease) if lease in self.charges:
                self.worked = True
                self.charges[lease].start()
                self._running[lease] = self.charges[lease]
            case Started(lease):  # too late: it has been given back
                self.channel.send(Interrupt(lease, Cause.LOST))
            case Trust() | Holding():
                self._prolonged(message)
            case Report(lease, outcome, seconds, memory, listened) if lease in self.charges:
                self.worked = True
                self.memory = memory or self.memory
                if listened:
                    self._listened.add(lease)
                yield Ended(self._drop(lease), outcome, seconds)

    def _prolonged(self, message: Trust | Holding) -> None:
        """Trust leases as far as handlers have prolonged them, in transactions of their own."""
        pairs = message.until if isinstance(message, Trust) else (message,)
        for lease, until in pairs:
            charge = self.charges.get(lease)
            if charge is None:
                continue
            if isinstance(message, Holding):
                charge.hold.held_until = until
            else:
                charge.hold.trusted_until = max(until, charge.hold.trusted_until)
                self._trusted[lease] = charge.hold.trusted_until
            if charge.cause is Cause.LOST and charge.hold.trusted:
                charge.cause = None

    def _rest(self) -> Iterator[Ended]:
        now = ticks()
        for lease in list(self.charges):
            charge = self._drop(lease)
            outcome = killed(charge) if self.killed else died(charge, self._process.exitcode)
            yield Ended(charge, outcome, now - (charge.started_at or now))

    def _drop(self, lease: Lease) -> Charge:
        self._trusted.pop(lease, None)
        self._running.pop(lease, None)
        return self.charges.pop(lease)

    def join(self, seconds: float) -> bool:
        """Wait for its end; return whether it has ended."""
        self._process.join(seconds)
        return self._process.exitcode is not None

    def close(self) -> None:
        """Release what is left of a dead child: descriptors, and programs its jobs started."""
        kill_group(self.pid)
        self.channel.close()
        with suppress(ValueError):  # nobody could tell how it ended: the forkserver is gone
            self._process.close()
