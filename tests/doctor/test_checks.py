"""System checks: which findings `check` shows, and that `migrate` heeds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.db import transaction

from django_leasequeue.checks import check_database, check_project
from tests.core.arrange import run

SETTINGS = """
from testproject.settings import *
from testproject.settings import DATABASES, LEASEQUEUE

{change}
"""


@pytest.fixture
def told(manage, tmp_path: Path, process_environment):
    """Run manage.py under changed settings; return the exit code and all that was written."""

    def ask(change: str, *arguments: str) -> tuple[int, str]:
        (tmp_path / "changed_settings.py").write_text(SETTINGS.format(change=change))
        path = os.pathsep.join([str(tmp_path), process_environment["PYTHONPATH"]])
        env = {"DJANGO_SETTINGS_MODULE": "changed_settings", "PYTHONPATH": path}
        ended = manage(*arguments, env=env)
        return ended.returncode, ended.stdout + ended.stderr

    return ask


def test_nothing_is_said_of_a_sound_project(connection):
    assert run_checks(tags=["leasequeue"]) == []
    assert check_project() == []
    assert check_database(databases=["default"]) == []


def test_broken_settings(queue_db, told):
    """I10: registered, whatever else is asked for."""
    code, text = told("LEASEQUEUE['LEASES'] = 60", "check", "--deploy")
    assert (code, "leasequeue.E001" in text) == (1, True)
    code, text = told("LEASEQUEUE['MIDDLEWARE'] = ['nowhere.Nothing']", "check")
    assert (code, "leasequeue.E003" in text) == (1, True)
    assert "docs/checks.md#settings" in text


@pytest.mark.only_on("mariadb", "mysql")
def test_a_broken_server(queue_db, told):
    """I10, A24, D11: `check --database` asks the server; `migrate` makes nothing on such a one."""
    change = (
        "DATABASES['default']['OPTIONS']['charset'] = 'utf8mb3'\n"
        "DATABASES['default']['OPTIONS']['init_command'] = "
        "\"SET default_storage_engine = MyISAM, sql_mode = ''\""
    )
    code, text = told(change, "check", "--database", "default")
    assert code == 1
    for one in ("E012", "W008", "W010"):
        assert f"leasequeue.{one}" in text
    code, text = told(change, "migrate")
    assert (code, "leasequeue.E012" in text) == (1, True)
    assert "Applying" not in text
    code, text = told(change, "check")
    assert (code, "E012" in text) == (0, False)


def test_another_database_is_not_asked_about(connection):
    assert check_database(databases=None) == []
    assert check_database(databases=["other"]) == []


def test_wrong_settings_are_said_once(settings):
    settings.LEASEQUEUE = {"LEASES": 60}
    assert [one.id for one in check_project()] == ["leasequeue.E001"]
    assert check_database(databases=["default"]) == []


def test_inside_a_transaction(connection):
    """As in a TestCase of the project's."""
    with transaction.atomic():
        assert check_database(databases=["default"]) == []
        run(connection, "SELECT 1")


def test_a_database_that_is_not_supported(connection, monkeypatch):
    monkeypatch.setattr(type(connection), "vendor", "oracle")
    (error,) = check_database(databases=["default"])
    assert error.id == "leasequeue.E002"
    assert "not on oracle" in error.msg


def test_they_carry_a_tag(settings):
    settings.LEASEQUEUE = {"LEASES": 60}
    assert [one.id for one in run_checks(tags=["leasequeue"])] == ["leasequeue.E001"]
