"""The pulse: how a worker is, as far as its own process knows, without asking a database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["LIVE_SECONDS", "Pulse", "not_live", "not_ready"]

#: A loop that has not turned for so long hangs. Every wait of a pass is bounded far below it.
LIVE_SECONDS = 60.0


class Pulse(NamedTuple):
    """A worker's state now.

    `turned_ago`: seconds since its loop last turned. `started`: it has turned once, with the
    database. `stopping`: it takes no further job. `reachable`: the database answered when it was
    last asked, and leases can be renewed. `ended`: `run` has returned.
    """

    turned_ago: float
    started: bool
    stopping: bool
    reachable: bool
    ended: bool = False


def not_live(pulses: Iterable[Pulse]) -> str:
    """Return why a process with these workers should be started again, "" if it need not be."""
    if any(pulse.turned_ago > LIVE_SECONDS and not pulse.ended for pulse in pulses):
        return f"the loop has not turned for {LIVE_SECONDS:g} s"
    return ""


def not_ready(pulses: Iterable[Pulse]) -> str:
    """Return why these workers claim no jobs now, "" if all that have not ended do."""
    known = list(pulses)
    working = [pulse for pulse in known if not pulse.ended]
    if known and not working:
        return "stopping"
    for pulse in working:
        if not pulse.started:
            return "starting"
        if pulse.stopping:
            return "stopping"
        if not pulse.reachable:
            return "the database cannot be reached"
        if pulse.turned_ago > LIVE_SECONDS:
            return f"the loop has not turned for {LIVE_SECONDS:g} s"
    return ""
