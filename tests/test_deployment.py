"""The shipped systemd unit: its figures fit the defaults of the settings, and systemd reads it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from dataclasses import replace
from pathlib import Path

import pytest

from django_leasequeue.conf import Conf
from tests.markdown import DOCS

UNIT = DOCS / "deployment" / "leasequeue-worker.service"


def parsed(text: str) -> ConfigParser:
    unit = ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#")
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


@pytest.fixture
def unit() -> ConfigParser:
    return parsed(UNIT.read_text(encoding="utf-8"))


def least_stop_seconds(conf: Conf) -> float:
    """The grace period, the kill, and giving back, which is tried for at least five seconds."""
    return max(conf.GRACE + conf.KILL_AFTER + max(conf.GRACE, 5), conf.LEASE)


def problems(unit: ConfigParser, conf: Conf) -> list[str]:
    service = unit["Service"]
    found = [
        f"{name} is {service.get(name)}, not {value}"
        for name, value in (
            ("Restart", "always"),
            ("KillMode", "mixed"),
            ("KillSignal", "SIGTERM"),
            ("OOMPolicy", "continue"),
        )
        if service.get(name) != value
    ]
    if float(service["TimeoutStopSec"]) <= least_stop_seconds(conf):
        found.append("TimeoutStopSec ends a worker that is still giving back")
    if not 0 < float(service["RestartSec"]) < conf.LEASE:
        found.append("RestartSec is a busy loop, or longer than what a crash costs anyway")
    if unit["Unit"].get("StartLimitIntervalSec") != "0":
        found.append("systemd gives up after some restarts")
    return found


def test_the_figures_fit_the_defaults(unit):
    assert problems(unit, Conf()) == []


@pytest.mark.parametrize(
    ("changed", "unfit"),
    [
        ({"GRACE": 45}, "TimeoutStopSec"),
        ({"KILL_AFTER": 20}, "TimeoutStopSec"),
        ({"LEASE": 90}, "TimeoutStopSec"),
        ({"LEASE": 3, "MIN_LEASE": 3}, "RestartSec"),
    ],
)
def test_other_defaults_would_not_fit(unit, changed, unfit):
    (problem,) = problems(unit, replace(Conf(), **changed))
    assert problem.startswith(unfit)


@pytest.mark.parametrize("name", ["Restart", "KillMode", "KillSignal", "OOMPolicy"])
def test_a_line_that_is_missing_is_seen(unit, name):
    del unit["Service"][name]
    assert problems(unit, Conf()) == [
        f"{name} is None, not {parsed(UNIT.read_text())['Service'][name]}"
    ]


def test_the_figures_in_its_comments_are_the_defaults():
    text = UNIT.read_text(encoding="utf-8")
    for words, value in (
        (r"--grace \((\d+)\)", Conf().GRACE),
        (r"--kill-after \((\d+)\)", Conf().KILL_AFTER),
        (r"the lease \((\d+)\)", Conf().LEASE),
    ):
        assert re.findall(words, text) == [f"{value:g}"]


def test_it_starts_the_command(unit):
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert Path(program).is_absolute()
    assert arguments == ["manage.py", "runworker"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_reads_it(tmp_path):
    text = UNIT.read_text(encoding="utf-8").replace("/srv/shop/.venv/bin/python", sys.executable)
    copy = tmp_path / UNIT.name
    copy.write_text(text)
    assert verified(copy) == (0, "")
    copy.write_text(text.replace("KillMode=mixed", "KillMode=mixd"))
    assert "Failed to parse kill mode" in verified(copy)[1]


def verified(path: Path) -> tuple[int, str]:
    answer = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in answer.stderr.splitlines() if path.name in line]
    return answer.returncode, "\n".join(ours)
