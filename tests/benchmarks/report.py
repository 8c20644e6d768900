"""The results as text and as the tables of docs/performance.md: every row, the bad ones too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BEGIN = "<!-- results: written by `python -m tests.benchmarks report`, do not edit -->"
END = "<!-- end of results -->"

Row = dict[str, Any]


def write(results: Path, page: Path, comparison: Path) -> int:
    """Replace what stands between the pages' marks by the results, and by those of other queues."""
    parts = [(one, *_around(one)) for one in (page, comparison)]
    found = json.loads(results.read_text())
    bodies = (markdown(found), "\n".join(_against_others(found["rows"])) + "\n")
    for (one, before, after), body in zip(parts, bodies, strict=True):
        one.write_text(f"{before}{BEGIN}\n\n{body}\n{END}{after}", encoding="utf-8")
    return 0


def _around(page: Path) -> tuple[str, str]:
    """Return what stands before and after a page's marks."""
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has not both marks: {BEGIN} and {END}")
    return before, after


def _against_others(rows: list[Row]) -> Iterator[str]:
    """Yield a table of how many times as fast this queue is: queues down, databases across."""
    kinds = {"peers": "nothing", "peers-effects": "write a row"}
    against = [row for row in rows if row["scenario"] in kinds]
    if not against:
        yield "Not part of the last run."
        return
    columns = list(dict.fromkeys((row["scenario"], row["database"]) for row in against))
    ratios = {
        (item["reference"], row["scenario"], row["database"]): item["ratio"]
        for row in against
        for item in row["comparisons"]
    }
    heads = (f"{database}, {kinds[scenario]}" for scenario, database in columns)
    yield f"| jobs that do | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(columns)}"
    for name in dict.fromkeys(name for name, _scenario, _database in ratios):
        cells = (_number(ratios.get((name, *column))) for column in columns)
        yield f"| {name} | {' | '.join(cells)} |"


def markdown(results: dict[str, Any]) -> str:
    """Return the results as Markdown: the machine, then a section for each scenario."""
    parts = [_machine(results)]
    names = list(dict.fromkeys(row["scenario"] for row in results["rows"]))
    for name in names:
        rows = [row for row in results["rows"] if row["scenario"] == name]
        parts.append("\n".join(_section(rows, results["options"])))
    if "peers" in names:
        parts.append(f"Versions of the other queues: {', '.join(results['pins'])}.")
    return "\n\n".join(parts) + "\n"


def _machine(results: dict[str, Any]) -> str:
    about = results["machine"]
    sync = about["fdatasync_ms"]
    servers = "; ".join(found["version"] for found in results["databases"].values())
    return (
        f"{about['processors']}, {about['memory_gib']} GiB, {about['kernel']}. Python "
        f"{about['python']}, Django {about['django']}. fdatasync of 4 KiB: {sync['p50']} ms, "
        f"95 % within {sync['p95']} ms. Load before the run: {about['load_before']}. "
        f"Servers: {servers}. Rounds: {results['options']['pairs']}; jobs of a drain: "
        f"{results['options']['jobs']}."
    )


def _section(rows: list[Row], usual: Row) -> Iterator[str]:
    yield f"### {rows[0]['title']}"
    yield ""
    yield from _figures(rows)
    if any(row["comparisons"] or row["bounds"] for row in rows):
        yield ""
        yield from _judgements(rows)
    notes = [note for row in rows for note in (*_effort(row, usual), *_notes(row))]
    if notes:
        yield ""
        yield from notes


def _figures(rows: list[Row]) -> Iterator[str]:
    """Yield a table of medians: subjects down, databases across."""
    medians = {
        (row["database"], figure["subject"]): figure["median"]
        for row in rows
        for figure in row["figures"]
    }
    subjects = dict.fromkeys(subject for _database, subject in medians)
    databases = [row["database"] for row in rows]
    yield f"| {rows[0]['unit']} | {' | '.join(databases)} |"
    yield f"|---|{'---|' * len(databases)}"
    for subject in subjects:
        cells = [_number(medians.get((name, subject))) for name in databases]
        yield f"| {subject} | {' | '.join(cells)} |"


def _judgements(rows: list[Row]) -> Iterator[str]:
    yield "| database | what | is | wanted | met |"
    yield "|---|---|---|---|---|"
    for row in rows:
        for item in row["comparisons"]:
            what = f"{item['subject']} ÷ {item['reference']}"
            shown = f"{item['ratio']:.2f} ({min(item['ratios']):.2f} to {max(item['ratios']):.2f})"
            yield f"| {row['database']} | {what} | {shown} | {_wanted(item)} | {_met(item)} |"
        for item in row["bounds"]:
            unit = row["unit"] if item.get("unit") is None else item["unit"]
            value = f"{_number(item['value'])} {unit}".strip()
            yield (
                f"| {row['database']} | {item['subject']} | {value} | {_wanted(item)} "
                f"| {_met(item)} |"
            )


def _effort(row: Row, usual: Row) -> Iterator[str]:
    """Yield how a row was measured that was not measured as most were."""
    if (row["pairs"], row["jobs"]) != (usual["pairs"], usual["jobs"]):
        rounds = "1 round" if row["pairs"] == 1 else f"{row['pairs']} rounds"
        yield f"- {row['database']}: {rounds}; jobs of a drain: {row['jobs']}"


def _notes(row: Row) -> Iterator[str]:
    for subject, reason in row["missing"].items():
        yield f"- {row['database']}, {subject}: not measured: {reason}"
    for subject, error in row["errors"].items():
        last = error.strip().splitlines()[-1][:300]
        yield f"- {row['database']}, {subject}: FAILED: {last}"


def _wanted(item: Row) -> str:
    if item.get("at_least") is not None:
        return f"≥ {item['at_least']:g}"
    return f"≤ {item['at_most']:g}" if item["at_most"] is not None else "–"


def _met(item: Row) -> str:
    if item.get("at_least") is None and item["at_most"] is None:
        return "–"
    return "yes" if item["met"] else "**no**"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def text_of(row: Row) -> str:
    """Return one row's medians and judgements, for a terminal."""
    lines = [f"  {item['subject']}: {_number(item['median'])}" for item in row["figures"]]
    lines += [f"  {line}" for line in list(_judgements([row]))[2:]]
    lines += [f"  {note}" for note in _notes(row)]
    return "\n".join(lines)
