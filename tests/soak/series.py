"""A series of samples: its table, and which of its figures grew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from statistics import median

#: Memory may grow by so much of itself, or so many MiB, whichever is more; nothing else may grow.
SHARE = 0.05
MEBIBYTES = 2.0
TENTHS = 10


@dataclass(frozen=True)
class Sample:
    """What a worker uses at one moment; memory in MiB, `helpers` are the forkserver's and kin."""

    seconds: float
    control_mib: float
    children_mib: float
    helpers_mib: float
    control_threads: int
    children_threads: int
    control_files: int
    children_files: int
    connections: int


def tenths(samples: list[Sample]) -> Iterator[Sample]:
    """Yield the median of each figure in each tenth of the series."""
    for number in range(TENTHS):
        part = samples[len(samples) * number // TENTHS : len(samples) * (number + 1) // TENTHS]
        columns = {name: [asdict(sample)[name] for sample in part] for name in _names()}
        yield Sample(**{name: median(values) for name, values in columns.items()})


def growth(samples: list[Sample]) -> list[str]:
    """Return a sentence for each figure that grew from the second tenth to the last."""
    if len(samples) < 2 * TENTHS:
        return [f"only {len(samples)} samples: too few jobs to judge by"]
    medians = list(tenths(samples))
    before, after = asdict(medians[1]), asdict(medians[-1])
    return [
        f"{name} grew from {before[name]:.1f} to {after[name]:.1f}"
        for name in _names()[1:]
        if after[name] - before[name] > _allowed(name, before[name])
    ]


def table(samples: list[Sample]) -> str:
    """Return the medians of each tenth as text."""
    rows = [_names()]
    for sample in tenths(samples):
        values = asdict(sample).items()
        rows.append([f"{value:.1f}" if "mib" in name else f"{value:.0f}" for name, value in values])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [zip(row, widths, strict=True) for row in rows]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in line) for line in lines)


def _names() -> list[str]:
    return [field.name for field in fields(Sample)]


def _allowed(name: str, before: float) -> float:
    return max(MEBIBYTES, SHARE * before) if name.endswith("_mib") else 0.0
