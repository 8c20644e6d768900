"""The model: what a job is after each operation, without a database and without the queue's code.

The costs of an attempt's end are those of the design (tests.sweep.spending).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.sweep.spending import RECORDED, RELEASES_IN_A_ROW

FINAL = {"done", "dead", "cancelled"}
#: Tries of a `failed` hook.
TRIES = 3
_AT_ONCE = {
    "completed": "done",
    "skipped": "done",
    "rejected": "dead",
    "cancelled": "cancelled",
    "parked": "parked",
}


@dataclass
class Row:
    """An attempt on record."""

    number: int
    outcome: str
    token: bytes


@dataclass
class Modelled:
    """A job, as far as the protocol is about it."""

    id: int
    queue: str
    priority: int = 0
    max_attempts: int = 5
    max_crashes: int = 3
    key: tuple[str, str] | None = None
    due: bool = True
    outlived: bool = False
    status: str = "ready"
    attempts: int = 0
    crashes: int = 0
    claims: int = 0
    releases: int = 0
    bury_tries: int = 0
    #: Of the attempt that runs, or of the burial.
    token: bytes | None = None
    unexpired: bool = False
    #: A burial is to be held, or is being held.
    waits: bool = False
    rows: list[Row] = field(default_factory=list)

    @property
    def final(self) -> bool:
        """Tell whether it will not run by itself."""
        return self.status in FINAL

    @property
    def has_key(self) -> bool:
        """Tell whether its key keeps others from being enqueued."""
        return self.key is not None and (self.key[0] == "forever" or not self.final)

    def holds(self, token: bytes) -> bool:
        """Tell whether a token may still write."""
        return self.status == "reserved" and self.token == token and self.unexpired

    def claim(self, token: bytes) -> None:
        """Somebody runs it from now on."""
        self.status, self.token, self.unexpired = "reserved", token, True
        self.attempts += 1
        self.claims += 1

    def end(self, outcome: str, *, started: bool = True, delay: float = 0, bury: bool) -> None:
        """The attempt that runs has ended so."""
        assert self.token is not None
        recorded = outcome in RECORDED and (started or outcome != "released")
        if recorded:
            self.rows.append(Row(self.claims, outcome, self.token))
        spent = self._spend(outcome, recorded=recorded)
        worn_out = self.attempts >= self.max_attempts
        broken = RECORDED.get(outcome, (0, 0))[1] > 0 and self.crashes >= self.max_crashes
        dies = "dead" if spent and (worn_out or broken) else "ready"
        self._leave(_AT_ONCE.get(outcome, dies), bury=bury)
        if self.status == "ready" and outcome != "released":
            self.due = delay == 0

    def _spend(self, outcome: str, *, recorded: bool) -> bool:
        """Count what the end costs; tell whether the attempt is spent."""
        cost = RECORDED[outcome] if recorded else (0, 0)
        spent = cost[0] > 0
        if outcome == "released":
            spent = recorded and self.releases >= RELEASES_IN_A_ROW
            self.releases = 0 if spent else self.releases + recorded
        else:
            self.releases = 0
        self.attempts -= 0 if spent or self.attempts == 0 else 1
        self.crashes += cost[1]
        return spent

    def _leave(self, status: str, *, bury: bool) -> None:
        self.status, self.token, self.unexpired = status, None, False
        self.waits = status == "dead" and bury

    def expire_unclaimed(self) -> None:
        """A claim met it after its time, or with no attempt left."""
        used_up = self.attempts >= self.max_attempts
        self._leave("dead" if used_up else "cancelled", bury=True)

    def cancel(self) -> None:
        """An operator stops it, running or not."""
        if self.status == "reserved":
            assert self.token is not None
            self.rows.append(Row(self.claims, "cancelled", self.token))
        self._leave("cancelled", bury=False)

    def requeue(self) -> None:
        """An operator gives it all its attempts back."""
        self._leave("ready", bury=False)
        self.attempts = self.crashes = self.releases = self.bury_tries = 0
        self.due, self.outlived = True, False

    def wake(self) -> None:
        """A worker knows its type by now."""
        self.status = "ready"

    def take_burial(self, token: bytes) -> None:
        """A worker runs its hook."""
        self.token, self.unexpired = token, True
        self.bury_tries += 1

    def end_burial(self, *, waits: bool, tried: bool = True) -> None:
        """The hook ran, or is to be tried again."""
        self.token, self.unexpired, self.waits = None, False, waits
        self.bury_tries -= not tried
