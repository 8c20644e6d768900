"""The shipped systemd units: their figures fit the settings' defaults, and systemd reads them.

And the accounts of MySQL and MariaDB: from which hosts they may come.
"""

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
from django_leasequeue.runtime import outage
from django_leasequeue.runtime.connections import bounds_for
from tests.markdown import DOCS

FOLDER = DOCS / "deployment"
UNIT = FOLDER / "leasequeue-worker.service"
TEMPLATE = FOLDER / "leasequeue-worker@.service"
PRUNE = FOLDER / "leasequeue-prune.service"
TIMER = FOLDER / "leasequeue-prune.timer"
GRANTS = FOLDER / "grants-mysql.sql"
NEEDS_SYSTEMD = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="needs systemd-analyze"
)
#: What S1's unit has, as far as systemd judges it by the same name.
HARDENING = (
    "NoNewPrivileges",
    "PrivateTmp",
    "PrivateDevices",
    "ProtectSystem",
    "ProtectHome",
    "ProtectKernelTunables",
    "ProtectKernelModules",
    "ProtectControlGroups",
    "LockPersonality",
    "RestrictAddressFamilies",
    "UMask",
)


def parsed(text: str) -> ConfigParser:
    # Some names may be there several times: systemd adds those up, the last one is enough here.
    unit = ConfigParser(interpolation=None, delimiters="=", comment_prefixes="#", strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    return unit


@pytest.fixture
def unit() -> ConfigParser:
    return parsed(UNIT.read_text(encoding="utf-8"))


def least_stop_seconds(conf: Conf) -> float:
    """The grace period, the kill, and the last tries to give jobs back, or a lease."""
    return max(conf.GRACE + conf.KILL_AFTER + last_tries(conf), conf.LEASE)


def last_tries(conf: Conf) -> float:
    """A statement under way when the child is killed, a pause, and one statement more."""
    return 2 * max(bounds_for(conf.LEASE).values()) + outage._LONGEST_WAIT


def problems(unit: ConfigParser, conf: Conf) -> list[str]:
    service = unit["Service"]
    found = [
        f"{name} is {service.get(name)}, not {value}"
        for name, value in (
            ("Type", "exec"),
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


@pytest.mark.parametrize("path", [UNIT, TEMPLATE], ids=lambda path: path.name)
def test_its_seconds_are_those_of_s1_s_unit(path):
    found = service(path)
    assert (found["RestartSec"], found["TimeoutStopSec"]) == ("3", "75")


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


@pytest.mark.parametrize("name", ["Type", "Restart", "KillMode", "KillSignal", "OOMPolicy"])
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
        (r"then (\d+) for the last tries", last_tries(Conf())),
        (r"the lease \((\d+)\)", Conf().LEASE),
    ):
        assert re.findall(words, text) == [f"{value:g}"]


def test_it_starts_the_command(unit):
    program, *arguments = unit["Service"]["ExecStart"].split()
    assert Path(program).is_absolute()
    assert arguments == ["manage.py", "runworker"]


def service(path: Path) -> dict[str, str]:
    return dict(parsed(path.read_text(encoding="utf-8"))["Service"])


@pytest.mark.parametrize("path", [UNIT, TEMPLATE, PRUNE], ids=lambda path: path.name)
def test_it_is_hardened_as_s1_s_unit(path):
    found = service(path)
    assert {name: found[name] for name in HARDENING} == {
        **dict.fromkeys(HARDENING, "true"),
        "ProtectSystem": "strict",
        "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6",
        "UMask": "0077",
    }
    assert found["CapabilityBoundingSet"] == ""
    assert found["User"] != "root"
    assert found["EnvironmentFile"].removeprefix("-").startswith("/etc/shop/")


def test_the_template_is_the_unit_but_for_its_profile():
    unit, template = service(UNIT), service(TEMPLATE)
    assert template.pop("EnvironmentFile") == "-/etc/shop/worker-%i.env"
    assert template.pop("ExecStart") == unit.pop("ExecStart") + " --profile %i"
    del unit["EnvironmentFile"]
    assert template == unit


def test_accounts_are_scoped_to_a_network():
    """S1: to the application's, and no public wildcard."""
    hosts = re.findall(r"'shop_\w+'@'([^']*)'", GRANTS.read_text(encoding="utf-8"))
    assert set(hosts) == {"10.0.0.%"}


def test_prune_has_an_account_of_its_own():
    assert service(PRUNE)["EnvironmentFile"] != service(UNIT)["EnvironmentFile"]
    assert PRUNE.stem == TIMER.stem  # a timer starts the service of its own name


@NEEDS_SYSTEMD
@pytest.mark.parametrize("path", [UNIT, TEMPLATE, PRUNE, TIMER], ids=lambda path: path.name)
def test_systemd_reads_it(tmp_path, path):
    for file in (UNIT, TEMPLATE, PRUNE, TIMER):
        text = file.read_text(encoding="utf-8")
        text = text.replace("/srv/shop/.venv/bin/python", sys.executable)
        (tmp_path / file.name).write_text(text)
    assert verified(tmp_path / path.name.replace("@", "@mail")) == (0, "")


@NEEDS_SYSTEMD
def test_what_systemd_cannot_read_is_seen(tmp_path):
    text = UNIT.read_text(encoding="utf-8").replace("/srv/shop/.venv/bin/python", sys.executable)
    copy = tmp_path / UNIT.name
    copy.write_text(text.replace("KillMode=mixed", "KillMode=mixd"))
    assert "Failed to parse kill mode" in verified(copy)[1]


@NEEDS_SYSTEMD
@pytest.mark.parametrize("path", [UNIT, TEMPLATE, PRUNE], ids=lambda path: path.name)
def test_systemd_finds_it_safe(path):
    """Of 10, with 10 for a service without any protection."""
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=20", str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout[-2000:]


def verified(path: Path) -> tuple[int, str]:
    answer = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in answer.stderr.splitlines() if "leasequeue" in line]
    return answer.returncode, "\n".join(ours)
