"""A storm in a few lines of figures, and every broken promise in a line of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.storm import Storm
from tests.chaos.verdict import Verdict


def report(storm: Storm, verdict: Verdict) -> Iterator[str]:
    """Yield the lines of the report."""
    said = storm.fleet.events()
    losses = said["job_lease_lost"] - said["job_lease_lost storm.cancelling"]
    yield f"jobs            {_list(verdict.jobs)}"
    yield f"attempts        {_list(verdict.attempts)}"
    yield f"blows           {_list(storm.blows.dealt)}"
    yield f"operator        {_list(storm.operated)}"
    yield (
        f"lease losses    {verdict.attempts['expired']} recovered, "
        f"{losses} said by the worker that had the lease"
    )
    yield (
        f"workers         {sum(len(slot.past) for slot in storm.fleet.slots)} started, "
        f"{said['database_lost']} times without the database, {storm.fatal} gave up at their end"
    )
    yield f"fenced effects  {verdict.effects}; {verdict.repeats} plain jobs ran once more"
    yield f"ticks           {verdict.ticks}"
    for name, count in verdict.broken.items():
        yield f"{name:<16}{count}"
    yield f"{'stuck':<16}{len(storm.stuck)}"
    yield from _left_out(storm)
    for problem in [*verdict.problems, *storm.stuck, *storm.problems]:
        yield f"FAILED: {problem}"


def _left_out(storm: Storm) -> Iterator[str]:
    if storm.server is None:
        yield "left out: killing the server, for there is none that is the storm's own"
    if not storm.fleet.wires:
        yield "left out: wires that break"
    if not storm.fleet.false_clock:
        yield "left out: a worker with a false clock"


def _list(counter: Counter[str]) -> str:
    named = ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))
    return f"{sum(counter.values())}: {named}"
