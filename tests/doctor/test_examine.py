"""All diagnoses together: none keeps the others from looking, and nothing is waited for."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connections

from django_leasequeue.core.inspection.server import NotPermitted
from django_leasequeue.doctor import bounds, diagnoses, examine, plans, sessions, standing, tables
from django_leasequeue.doctor.findings import Finding, Severity
from tests.core.arrange import run
from tests.doctor.asking import ids


def test_a_sound_queue(connection):
    assert {one.kind.severity for one in examine.examine()} <= {Severity.NOTE}


def test_wrong_settings_are_all_that_is_said(connection, settings):
    settings.LEASEQUEUE = {"LEASES": 60}
    assert ids(examine.examine()) == ["E001"]


def test_errors_come_first(connection, settings, monkeypatch):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "MIDDLEWARE": ["nowhere.Nothing"]}
    monkeypatch.setitem(settings.DATABASES, "other", {})
    found = ids(examine.examine())
    assert found[0] == "E003"
    assert "I001" in found


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_server_that_is_away(connection, monkeypatch):
    settings = connections["default"].settings_dict
    monkeypatch.setitem(settings, "PORT", "1")
    monkeypatch.setitem(settings, "PASSWORD", "a-secret-of-mine")
    (found,) = [one for one in examine.examine() if one.kind.severity is Severity.ERROR]
    assert ids([found]) == ["E008"]
    assert "a-secret-of-mine" not in found.what + found.hint


def test_a_database_that_is_not_supported(connection, monkeypatch):
    monkeypatch.setattr(type(connections["default"]), "vendor", "oracle")
    (found,) = [one for one in examine.examine() if one.kind.severity is Severity.ERROR]
    assert ids([found]) == ["E002"]
    assert "oracle" in found.what


def test_a_diagnosis_that_may_not_look(connection, case):
    def secret_things(case):
        raise NotPermitted("a key")

    def broken_things(case):
        run(case.connection, "SELECT nothing FROM nowhere")
        yield

    def others(case):
        yield bounds.LOCK_WAIT.found("seen.")

    found = list(examine.diagnose(case(), [secret_things, broken_things, others]))
    assert ids(found) == ["I007", "I007", "I002"]
    assert found[0].what == "Not looked at: secret things. It takes a key."
    assert found[1].what.startswith("Not looked at: broken things. ")


def test_a_connection_that_is_lost(connection, case):
    def loses_it(case) -> list[Finding]:
        raise OperationalError(2013, "Lost connection")

    there = case()
    vars(there.connection)["is_usable"] = lambda: False
    with pytest.raises(OperationalError):
        list(examine.diagnose(there, [loses_it]))


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_locked_table_is_not_waited_for(connection, second_connection):
    """What cannot be looked at within a second is named."""
    other = second_connection()
    other.set_autocommit(False)
    try:
        if connection.vendor == "mysql":
            run(other, "LOCK TABLES leasequeue_job WRITE")
        else:
            run(other, "LOCK TABLE leasequeue_job IN ACCESS EXCLUSIVE MODE")
        with sessions.open_case("default") as case:
            looked = [standing.expired_leases, tables.types, plans.plans]
            found = list(examine.diagnose(case, looked))
    finally:
        other.rollback()
        if connection.vendor == "mysql":
            run(other, "UNLOCK TABLES")
        other.set_autocommit(True)
    assert ids(found) == ["I007", "I007"]
    assert found[0].what.startswith("Not looked at: expired leases. ")
    assert found[1].what.startswith("Not looked at: plans. ")


def test_each_diagnosis_is_listed_once():
    listed = [*diagnoses.ON_SERVER, *diagnoses.ON_TABLES]
    assert len(listed) == len(set(listed))
    assert set(diagnoses.QUICK) <= set(listed)
    assert len(diagnoses.WITHOUT_SERVER) == len(set(diagnoses.WITHOUT_SERVER))
