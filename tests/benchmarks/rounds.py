"""A scenario's contestants take turns, round after round; ratios are of one round each."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

#: Does its work once; returns figures by name, "" for the only one.
Contestant = Callable[[], Mapping[str, float]]
ALL = ("sqlite", "mariadb", "mysql", "postgres")


@dataclass(frozen=True)
class Bench:
    """What a run is told: a folder for files, how many jobs, seconds of silence, the database."""

    folder: Path
    kind: str
    jobs: int = 10_000
    silence: float = 60.0
    pairs: int = 5


@dataclass(frozen=True)
class Comparison:
    """A subject's figure over the reference's, at least (or at most) so much, if anything.

    That is wanted on servers; of SQLite only where a comparison is for it alone.
    """

    subject: str
    reference: str
    at_least: float | None = None
    at_most: float | None = None
    databases: tuple[str, ...] = ALL


@dataclass(frozen=True)
class Bound:
    """A figure that is to be at most, or at least, so much; in a `unit` that may be its own."""

    subject: str
    at_most: float | None = None
    at_least: float | None = None
    unit: str | None = None


@dataclass(frozen=True)
class Scenario:
    """What takes turns, and what is compared. `rounds` is for those whose one run is long."""

    name: str
    title: str
    unit: str
    contestants: Callable[[Bench], Mapping[str, Contestant | str]]
    comparisons: tuple[Comparison, ...] = ()
    bounds: tuple[Bound, ...] = ()
    databases: tuple[str, ...] = ALL
    rounds: int | None = None


@dataclass
class Outcome:
    """The figures of a scenario on one database, by subject, and what went wrong."""

    values: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def run(scenario: Scenario, bench: Bench, say: Callable[[str], None]) -> dict[str, Any]:
    """Let the contestants take turns; return the scenario's rows as JSON data."""
    outcome = Outcome()
    try:
        contestants = dict(scenario.contestants(bench))
    except Exception:  # noqa: BLE001 - a scenario that cannot start is a row of the results
        contestants = {}
        outcome.errors["(start)"] = traceback.format_exc()
        say(outcome.errors["(start)"])
    outcome.missing = {name: what for name, what in contestants.items() if isinstance(what, str)}
    for _round in range(scenario.rounds or bench.pairs):
        for name, contestant in contestants.items():
            if not isinstance(contestant, str) and name not in outcome.errors:
                _turn(name, contestant, outcome, say)
    return _rows(scenario, bench, outcome)


def _turn(name: str, contestant: Contestant, outcome: Outcome, say: Callable[[str], None]) -> None:
    try:
        figures = contestant()
    except Exception as error:  # noqa: BLE001 - a bad row is a row of the results
        outcome.errors[name] = f"{type(error).__name__}: {error}"
        say(f"  {name}: {traceback.format_exc()}")
        return
    for figure, value in figures.items():
        subject = f"{name}, {figure}" if figure else name
        outcome.values.setdefault(subject, []).append(value)
    say(f"  {name}: {', '.join(f'{key} {value:.4g}'.strip() for key, value in figures.items())}")


def _rows(scenario: Scenario, bench: Bench, outcome: Outcome) -> dict[str, Any]:
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "unit": scenario.unit,
        "database": bench.kind,
        "pairs": scenario.rounds or bench.pairs,
        "jobs": bench.jobs,
        "figures": [
            {"subject": subject, "median": median(values), "values": values}
            for subject, values in outcome.values.items()
        ],
        "comparisons": [
            _compared(item, outcome.values, bench.kind)
            for item in scenario.comparisons
            if bench.kind in item.databases
            and {item.subject, item.reference} <= set(outcome.values)
        ],
        "bounds": [
            _bounded(item, outcome.values)
            for item in scenario.bounds
            if item.subject in outcome.values
        ],
        "missing": outcome.missing,
        "errors": outcome.errors,
    }


def _compared(item: Comparison, values: Mapping[str, list[float]], kind: str) -> dict[str, Any]:
    if kind == "sqlite" and item.databases != ("sqlite",):
        item = replace(item, at_least=None, at_most=None)
    pairs = zip(values[item.subject], values[item.reference], strict=False)
    ratios = [subject / reference for subject, reference in pairs]
    ratio = median(ratios)
    return {
        "subject": item.subject,
        "reference": item.reference,
        "ratio": ratio,
        "ratios": ratios,
        "at_least": item.at_least,
        "at_most": item.at_most,
        "met": _met(item, ratio),
    }


def _bounded(item: Bound, values: Mapping[str, list[float]]) -> dict[str, Any]:
    value = median(values[item.subject])
    return {
        "subject": item.subject,
        "value": value,
        "at_least": item.at_least,
        "at_most": item.at_most,
        "met": _met(item, value),
    }


def _met(item: Comparison | Bound, value: float) -> bool:
    return (item.at_least is None or value >= item.at_least) and (
        item.at_most is None or value <= item.at_most
    )
