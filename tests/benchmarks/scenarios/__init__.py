"""The scenarios, in the order in which they are run and reported."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.rounds import Scenario
from tests.benchmarks.scenarios import (
    big,
    contend,
    drain,
    effects,
    enqueue,
    idle,
    lanes,
    latency,
    maintenance,
    peers,
    sleep,
    view,
)

ALL: tuple[Scenario, ...] = (
    *enqueue.SCENARIOS,
    drain.SCENARIO,
    effects.SCENARIO,
    sleep.SCENARIO,
    *latency.SCENARIOS,
    idle.SCENARIO,
    view.SCENARIO,
    contend.SCENARIO,
    lanes.SCENARIO,
    *maintenance.SCENARIOS,
    *big.SCENARIOS,
    *peers.SCENARIOS,
)


def chosen(names: str, kind: str) -> Iterator[Scenario]:
    """Yield the named scenarios, or all, that run on this database.

    Raises SystemExit for a name that is none.
    """
    wanted = set(filter(None, names.split(",")))
    if unknown := wanted - {scenario.name for scenario in ALL}:
        known = ", ".join(scenario.name for scenario in ALL)
        raise SystemExit(f"{sorted(unknown)} are no scenarios; there are: {known}")
    for scenario in ALL:
        if kind in scenario.databases and (not wanted or scenario.name in wanted):
            yield scenario
