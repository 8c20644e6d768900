"""The benchmarks themselves: they run on small tables, see what is wrong, and write the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.benchmarks import report, rounds, scenarios
from tests.benchmarks.peers import PEERS
from tests.benchmarks.peers.environments import pinned, pins
from tests.benchmarks.rounds import Bench, Bound, Comparison, Scenario
from tests.markdown import DOCS, ROOT

#: With workers and a limit; in this process; with hand-written chunks.
QUICK = "effects,bulk,requeue"


def run(tmp_path, *arguments):
    command = [sys.executable, "-m", "tests.benchmarks", *arguments]
    url = f"sqlite:///{tmp_path}/bench.sqlite3"
    environment = {**os.environ, "DATABASE_URL": url, "BENCH_DISK": str(tmp_path)}
    answer = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.mark.only_on("sqlite")
def test_a_small_run_and_its_page(tmp_path):
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    small = ["--pairs", "1", "--jobs", "50", "--silence", "0.1", "--output", str(results)]
    run(tmp_path, "run", "--scenarios", QUICK, *small)
    rows = {row["scenario"]: row for row in json.loads(results.read_text())["rows"]}
    assert set(rows) == set(QUICK.split(","))
    assert all(row["figures"] and not row["errors"] for row in rows.values())
    others = tmp_path / "others.md"
    for copy, name in ((page, "performance.md"), (others, "comparison.md")):
        copy.write_text((DOCS / name).read_text(encoding="utf-8"))
    run(tmp_path, "report", str(results), "--page", str(page), "--comparison", str(others))
    assert "Not part of the last run." in others.read_text()
    text = page.read_text()
    assert all(f"### {row['title']}" in text for row in rows.values())
    assert "| complete(), 2 children |" in text


def scenario(**contestants):
    return Scenario(
        name="a",
        title="A",
        unit="jobs/s",
        contestants=lambda _bench: contestants,
        comparisons=(Comparison("ours", "limit", at_least=1.0),),
        bounds=(Bound("ours", at_most=3),),
    )


def figures(*values):
    left = list(values)
    return lambda: {"": left.pop(0)}


def measured(tmp_path, **contestants):
    said: list[str] = []
    return rounds.run(scenario(**contestants), Bench(tmp_path, "mariadb", pairs=3), said.append)


def test_a_ratio_is_the_median_of_the_rounds(tmp_path):
    row = measured(tmp_path, ours=figures(1, 4, 9), limit=figures(2, 2, 3))
    (ratio,) = row["comparisons"]
    assert (ratio["ratios"], ratio["ratio"], ratio["met"]) == ([0.5, 2, 3], 2, True)
    (bound,) = row["bounds"]
    assert (bound["value"], bound["met"]) == (4, False)
    assert "| mariadb | ours ÷ limit | 2.00 (0.50 to 3.00) | ≥ 1 | yes |" in report.text_of(row)
    assert "| ≤ 3 | **no** |" in report.text_of(row)


def test_sqlite_is_shown_beside_servers_and_not_judged(tmp_path):
    found = scenario(ours=figures(1.0), limit=figures(2.0))
    row = rounds.run(found, Bench(tmp_path, "sqlite", pairs=1), len)
    assert (row["comparisons"][0]["ratio"], row["comparisons"][0]["at_least"]) == (0.5, None)


def test_contestants_take_turns(tmp_path):
    order = []

    def contestant(name):
        def run():
            order.append(name)
            return {"": 1.0}

        return run

    measured(tmp_path, ours=contestant("ours"), limit=contestant("limit"))
    assert order == ["ours", "limit"] * 3


def test_a_failure_is_a_row(tmp_path):
    def broken():
        raise RuntimeError("lost a job")

    row = measured(tmp_path, ours=broken, limit=figures(1, 1, 1), other="is not installed")
    assert row["comparisons"] == []
    assert "ours: FAILED: RuntimeError: lost a job" in report.text_of(row)
    assert "other: not measured: is not installed" in report.text_of(row)


def test_a_page_without_marks_is_left_alone(tmp_path):
    page, results, whole = tmp_path / "page.md", tmp_path / "results.json", tmp_path / "whole.md"
    page.write_text("# Mine\n")
    whole.write_text(f"{report.BEGIN}\nold\n{report.END}\n")
    results.write_text("{}")
    for pages in ((page, whole), (whole, page)):
        with pytest.raises(SystemExit, match="has not both marks"):
            report.write(results, *pages)
    assert page.read_text() == "# Mine\n"
    assert "old" in whole.read_text()


def test_other_queues_are_rows_and_databases_columns():
    ratios = {"a queue": 2.5, "another": 11.0}
    rows = [
        {
            "scenario": "peers",
            "database": database,
            "comparisons": [
                {"reference": name, "ratio": ratio} for name, ratio in list(ratios.items())[:count]
            ],
        }
        for database, count in (("postgres", 2), ("mariadb", 1))
    ]
    assert list(report._against_others(rows)) == [
        "| jobs that do | postgres, nothing | mariadb, nothing |",
        "|---|---|---|",
        "| a queue | 2.5 | 2.5 |",
        "| another | 11 | – |",
    ]


def test_every_peer_is_pinned_and_every_pin_is_a_peer_s():
    assert all("==" in pin for pin in pins())
    assert {pin for peer in PEERS for pin in pinned(peer)} == set(pins())


def test_names_of_scenarios():
    names = [item.name for item in scenarios.ALL]
    assert len(set(names)) == len(names)
    assert [item.name for item in scenarios.chosen("big,drain", "sqlite")] == ["drain", "big"]
    with pytest.raises(SystemExit, match="there are: enqueue, "):
        list(scenarios.chosen("drian", "sqlite"))
