"""G2: sessions that the server ended while nothing happened cost no attempt."""

from __future__ import annotations

import logging

import pytest
from django.db import connections

from django_leasequeue import enqueue
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import watching
from tests.field.server_sessions import number, options_with_limits, wait_ended
from tests.field.slot import opened
from tests.field.workers import working

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")

AGES = pytest.mark.parametrize("age", [None, 0, 600])
CHECKS = pytest.mark.parametrize("checks", [True, False])


@pytest.fixture
def project(connection, monkeypatch):
    """Settings for connections opened from now on: they end after an idle second."""
    options = options_with_limits(
        connection.vendor, connections.settings["default"].get("OPTIONS", {})
    )

    def set_up(age, checks):
        own = {**connections.settings["default"]}
        own.update(CONN_MAX_AGE=age, CONN_HEALTH_CHECKS=checks, OPTIONS=options)
        monkeypatch.setitem(connections.settings, "default", own)

    return set_up


@AGES
@CHECKS
def test_a_job_after_a_long_pause(connection, project, caplog, age, checks):
    project(age, checks)
    with opened() as slot, caplog.at_level(logging.WARNING):
        first = slot.result(lambda: number(connections["default"]))
        wait_ended(connection, first)
        assert slot.attempt(lambda: void(make_report("after the pause"))).end == "completed"
        assert slot.result(lambda: number(connections["default"])) != first
    assert reports() == ["after the pause"]
    assert caplog.messages == []


@AGES
def test_a_worker_that_had_nothing_to_do(connection, project, declare, age):
    """Its own sessions outlive the pause because it polls; that of its handlers does not."""
    project(age, checks=False)
    declare("looks")(lambda: number(connections["default"]))
    with watching() as moments, working():
        first = enqueue("looks").id
        moments.wait("job_completed", job_id=first)
        wait_ended(connection, job(first).result)
        second = enqueue("looks").id
        moments.wait("job_completed", job_id=second)
    assert outcomes(second) == ["completed"]
    assert job(second).result != job(first).result


def void(value: object) -> None:
    """For handlers whose result is no JSON."""
