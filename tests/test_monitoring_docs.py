"""The documented metrics, alerts and dashboard against the code: what one names, the other has."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from django.apps import apps

from django_leasequeue.cli.health import Health
from django_leasequeue.core import gauges
from django_leasequeue.metrics.families import FAMILIES, Family
from django_leasequeue.metrics.gauges import FRESH_SECONDS
from django_leasequeue.port import _MOST_CLIENTS
from django_leasequeue.runtime.pulse import LIVE_SECONDS
from tests import house_rules, markdown
from tests.markdown import DOCS, ROOT

MONITORING = DOCS / "monitoring"
#: What S1's README tells to alert on, and the rule that does.
ALERTS = {
    "dead-job growth": {"LeasequeueDeadJobs", "LeasequeueDeadLettersGrow"},
    "oldest-ready age": {"LeasequeueOldestReadyJob"},
    "repeated recovery": {"LeasequeueRepeatedRecovery"},
    "retry rate": {"LeasequeueRetryRate"},
    "processing latency": {"LeasequeueSlowHandlers", "LeasequeueSlowSettlement"},
    "release failures": {"LeasequeueReleaseFailures"},
    "fatal database errors": {"LeasequeueFatalErrors", "LeasequeueDatabaseAway"},
}


def exposed(family: Family) -> set[str]:
    """Return the names of a metric's samples."""
    ends = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    return {f"{family.name}{end}" for end in ends[family.kind]}


SAMPLES = {name: family for family in FAMILIES.values() for name in exposed(family)}


def test_the_list_of_metrics():
    rows = markdown.table(markdown.read("metrics.md"), "List")
    assert {
        name: (row["kind"], tuple(re.findall(r"\w+", row["labels"])), row["meaning"])
        for name, row in rows.items()
    } == {
        family.name + ("_total" if family.kind == "counter" else ""): (
            family.kind,
            family.labels,
            family.help,
        )
        for family in FAMILIES.values()
    }


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in markdown.docs()])
def test_what_a_page_calls_a_metric_is_one(page):
    named = set(re.findall(r"`(leasequeue_[a-z_]+)`", page.read_text(encoding="utf-8")))
    tables = {model._meta.db_table for model in apps.get_app_config("leasequeue").get_models()}
    histograms = {family.name for family in FAMILIES.values() if family.kind == "histogram"}
    assert named - {"leasequeue_"} <= tables | histograms | set(SAMPLES)


def test_every_metric_is_filled_somewhere():
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in house_rules.sources()
        if path.parent.name == "metrics" and path.name != "families.py"
    )
    for name in FAMILIES:
        short = name.removeprefix("leasequeue_")
        assert f'"{name}"' in sources or f'"{short}"' in sources, name


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("metrics.md", f"stops counting at {gauges.CAP:,}".replace(",", " ")),
        ("metrics.md", f"the first {gauges.MOST_QUEUES} queues"),
        ("metrics.md", f"At most {_MOST_CLIENTS} are served"),
        ("health.md", f"within {LIVE_SECONDS:g} s"),
        ("health.md", f"that has not turned for {LIVE_SECONDS:g} s"),
    ],
)
def test_a_figure_is_the_code_s(page, text):
    assert text in " ".join(markdown.read(page).split())


def test_readings_are_kept_for_five_seconds_as_the_page_says():
    assert FRESH_SECONDS == 5


def test_the_options_of_health():
    from argparse import ArgumentParser

    parser = ArgumentParser(add_help=False)
    Health().add_arguments(parser)
    rows = markdown.table(markdown.read("health.md"), "leasequeue health")
    assert set(rows) - {"--database"} == {one.option_strings[0] for one in parser._actions}


def expressions() -> Iterator[tuple[str, str]]:
    """Yield where each expression stands, and the expression."""
    board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]
    for rule in rules():
        yield rule["alert"], rule["expr"]


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((MONITORING / "alerts.yml").read_text(encoding="utf-8"))
    assert set(document) == {"groups"}
    return [rule for group in document["groups"] for rule in group["rules"]]


def test_expressions_name_metrics_and_labels_that_exist():
    pytest.importorskip("yaml")
    everywhere = {"instance", "le"}
    for place, expression in expressions():
        assert expression.count("(") == expression.count(")"), place
        names = set(re.findall(r"\bleasequeue_\w+", expression))
        assert names, place
        assert names <= set(SAMPLES), place
        labels = everywhere.union(*(SAMPLES[name].labels for name in names))
        grouped = re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
        matched = re.findall(r"\{([^}]*)\}", expression)
        used = {one.strip() for part in grouped for one in part.split(",")}
        used |= {name for part in matched for name in re.findall(r"(\w+)(?:=~|!=|=)", part)}
        assert used <= labels, place


def test_every_alert_says_what_is_wrong_and_what_to_do():
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    for rule in rules():
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_there_is_an_alert_for_all_that_is_to_be_watched():
    assert set().union(*ALERTS.values()) <= {rule["alert"] for rule in rules()}


def test_the_alerts_fire_as_they_should():
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    series = ROOT / "tests" / "alerts_test.yml"
    for arguments in (("check", "rules", MONITORING / "alerts.yml"), ("test", "rules", series)):
        ended = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_labels_in_summaries_are_those_of_the_expression():
    for rule in rules():
        used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        kept = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
        whole = not kept  # no aggregation: all labels are there
        shown = {one.strip() for part in kept for one in part.split(",")}
        assert whole or used <= shown, rule["alert"]


def test_the_dashboard_is_one_that_can_be_imported():
    board = json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    variables = {variable["name"] for variable in board["templating"]["list"]}
    text = json.dumps(board)
    assert set(re.findall(r"\$\{?(\w+)", text)) - {"__rate_interval", "__all"} <= variables
    shown = {
        name
        for _place, expression in expressions()
        for name in re.findall(r"leasequeue_\w+", expression)
    }
    for name, family in FAMILIES.items():
        hidden = {
            "leasequeue_build_info",
            "leasequeue_gauges_age_seconds",
            "leasequeue_gauges_complete",
        }
        assert name in hidden or exposed(family) & shown, f"{name} is nowhere to be seen"
    places = [tuple(panel["gridPos"][key] for key in "xy") for panel in board["panels"]]
    assert len(places) == len(set(places))
