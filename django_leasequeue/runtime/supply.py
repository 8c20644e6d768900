"""Supply: what the crew is given to run, in one pass: burials, what was parked, claims."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.runtime.burials import Burials
from django_leasequeue.runtime.charges import Charge
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.crew import Capacity, Crew
from django_leasequeue.runtime.doorbell import Doorbell
from django_leasequeue.runtime.intake import Intake
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.options import WorkerOptions
from django_leasequeue.runtime.outage import Outage
from django_leasequeue.runtime.parking import Parking
from django_leasequeue.runtime.poll import Poll
from django_leasequeue.runtime.returns import Returns
from django_leasequeue.runtime.ticking import Ticking

__all__ = ["LOOK_SECONDS", "Supply"]

#: How often limits are looked at while handlers run, in seconds.
LOOK_SECONDS = 0.2
#: Then a slot becomes free: for the hooks of the dead, and for what else waits for one.
_AHEAD_SECONDS = 1.0


class Supply:
    """Gives a crew as much as it can take. Methods return seconds until the next look.

    0 for at once, None when a draining worker has nothing to wait for; they raise database
    errors. `listening`: the last look has found nothing, so the doorbell may end the wait.
    """

    def __init__(
        self,
        options: WorkerOptions,
        crew: Crew,
        intake: Intake,
        burials: Burials,
        parking: Parking,
        returns: Returns,
        ticking: Ticking,
        outage: Outage,
        meter: Meter,
    ) -> None:
        self.bell: Doorbell | None = None
        self.listening = False
        self.poll = Poll(options.poll_min, options.poll_max)
        self._options = options
        self._crew = crew
        self._intake = intake
        self._burials = burials
        self._parking = parking
        self._returns = returns
        self._ticking = ticking
        self._outage = outage
        self._meter = meter
        self._buried = False
        self._ahead_at = self._took_at = 0.0

    def room(self) -> Capacity:
        """Return how many jobs may be claimed now."""
        room = self._crew.capacity()
        if self._options.max_jobs is None:
            return room
        running = sum(not charge.burial for charge in self._crew.charges)
        left = max(0, self._options.max_jobs - self._returns.jobs_counted - running)
        free = min(room.free, left)
        return Capacity(free, min(room.ahead, left - free))

    def idle(self) -> float:
        """Return for how long there is nothing to claim, or nobody to claim for."""
        wait = self.poll.wait_seconds()
        return min(wait, LOOK_SECONDS) if self._crew.charges or self._returns else wait

    def take_now(self, connection: BaseDatabaseWrapper, room: Capacity) -> float | None:
        """Claim for those who have nothing to run."""
        self._took_at = ticks()
        heard = self.bell is not None and self.bell.before_look(connection)
        skipped = self._buried  # hooks and handlers take turns where both wait
        burial = None if skipped else self._burials.take(connection)
        self._buried = burial is not None
        if burial is not None:
            self._crew.give([burial])
            return 0
        pulled = self._intake.pull(self._options.database)
        self._wake(connection, room)
        charges = self._take(connection, room)
        self._outage.over()
        if not charges and skipped:
            return 0
        if not charges and (pulled or self._is_drained(connection)):
            # What was just pulled, or enqueued by the jobs just waited for, may be in lanes not
            # known yet. If not, and it is for later or for others, the source may have more.
            self._intake.forget()
            self._wake(connection, room, now=True)
            charges = self._take(connection, room)
            if not charges:
                return 0 if pulled else None
        if not charges and heard:
            self._intake.forget()  # its lane may be new, or it was committed late
            charges = self._take(connection, room)
        if self.bell is not None:
            self.bell.after_look(found=bool(charges))
        if not charges:
            self.listening = True
            return self.idle()
        self._hand_over(charges)
        return 0

    def take_ahead(self, connection: BaseDatabaseWrapper, room: Capacity) -> float:
        """Claim what is to wait, while the crew is busy: it need not wait for the next claim."""
        now = ticks()
        if now < self._ahead_at or now - self._took_at > _AHEAD_SECONDS:
            return self.idle()
        charges = self._take(connection, room)
        self._outage.over()
        if not charges:  # the crew's every word would ask the database again
            self._ahead_at = ticks() + self._options.poll_max
            return self.idle()
        self._hand_over(charges)
        return 0

    def forget(self) -> None:
        """Have the next look go everywhere: jobs may have come that are due for long."""
        self._intake.forget()

    def heard(self) -> None:
        """Look everywhere, and often: the doorbell has rung."""
        self._intake.forget()  # the lane of what came may be new, or it was committed late
        self.poll.active()

    def _take(self, connection: BaseDatabaseWrapper, room: Capacity) -> list[Charge]:
        since = ticks()
        charges = self._intake.take(connection, room)
        self._meter.claimed(charges, ticks() - since)
        return charges

    def _wake(self, connection: BaseDatabaseWrapper, room: Capacity, *, now: bool = False) -> None:
        if self._parking.wake_if_due(connection, room.free + room.ahead, now=now):
            self._intake.forget()  # what was parked has been due for long: before each lane's mark

    def _hand_over(self, charges: list[Charge]) -> None:
        """Give the crew what it may run, and let the rest end as parked."""
        known, parked = self._parking.sift(charges)
        for ended in parked:
            self._returns.add(ended)
        if known:
            self._crew.give(known)
        self.poll.active()

    def _is_drained(self, connection: BaseDatabaseWrapper) -> bool:
        """Tell whether a draining worker has nothing to wait for: its own jobs, or others'."""
        if not self._options.drain or self._crew.charges or self._returns:
            return False
        return self._ticking.over and self._intake.drained(connection)
