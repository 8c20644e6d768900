"""`python -m tests.benchmarks run | report`: measure on one database; write the page's tables."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import report

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> int:
    """Run one verb; return 1 when a contestant failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    run = verbs.add_parser("run", help="measure on the database of DATABASE_URL")
    run.add_argument("--scenarios", default="", help="names, separated by commas; all without it")
    run.add_argument("--pairs", type=int, default=5, help="rounds of each scenario")
    run.add_argument("--jobs", type=int, default=10_000, help="jobs of a drain")
    run.add_argument("--silence", type=float, default=60.0, help="seconds until a worker is idle")
    run.add_argument("--output", type=Path, required=True, help="JSON, added to if it exists")
    run.set_defaults(verb=measure)
    write = verbs.add_parser("report", help="write the results into the page")
    write.add_argument("results", type=Path)
    write.add_argument("--page", type=Path, default=DOCS / "performance.md")
    write.add_argument("--comparison", type=Path, default=DOCS / "comparison.md")
    write.set_defaults(
        verb=lambda options: report.write(options.results, options.page, options.comparison)
    )
    options = parser.parse_args()
    code: int = options.verb(options)
    return code


def measure(options: argparse.Namespace) -> int:
    """Run the scenarios and add their rows to the file after each."""
    from tests.benchmarks import project

    with project.databases() as folder:
        from tests.benchmarks import machine, rounds, scenarios
        from tests.benchmarks.peers import environments

        kind = project.kind()
        bench = rounds.Bench(folder, kind, options.jobs, options.silence, options.pairs)
        results = _read(options.output)
        results["machine"] = results.get("machine") or machine.machine()
        label = os.environ.get("BENCH_LABEL") or kind
        results["databases"][kind] = {"label": label, "version": machine.server_version()}
        results["pins"] = environments.pins()
        results["options"] = {"pairs": options.pairs, "jobs": options.jobs}
        _say(f"{label} ({machine.server_version()}); {json.dumps(results['machine'])}")
        failed = False
        for scenario in scenarios.chosen(options.scenarios, kind):
            _say(f"{kind}: {scenario.title} ({scenario.unit})")
            began = time.monotonic()
            row = rounds.run(scenario, bench, _say)
            row["seconds"] = round(time.monotonic() - began)
            failed = failed or bool(row["errors"])
            results["rows"] = [item for item in results["rows"] if not _same(item, row)] + [row]
            options.output.write_text(json.dumps(results, indent=1))
            _say(report.text_of(row))
    return 1 if failed else 0


def _read(path: Path) -> dict[str, Any]:
    empty: dict[str, Any] = {"machine": {}, "databases": {}, "rows": []}
    return json.loads(path.read_text()) if path.exists() else empty


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["scenario"], one["database"]) == (other["scenario"], other["database"])


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  (a command line talks by printing)


if __name__ == "__main__":
    sys.exit(main())
