"""Settings, routers, models and leases: what is looked at without a server."""

from __future__ import annotations

import pytest
from django.db import connections, models
from django.test.utils import isolate_apps

from django_leasequeue.doctor import bounds, configuration, relations, routers
from django_leasequeue.doctor.examine import look_at_project
from django_leasequeue.models import Job
from tests.doctor.asking import ids, only


def test_this_project_is_sound():
    assert list(configuration.settings()) == []
    assert list(look_at_project()) == []


def test_settings(settings):
    settings.LEASEQUEUE = {"LEASES": 60}
    found = only(configuration.settings)
    assert (ids([found]), "'LEASES'" in found.what) == (["E001"], True)


def test_middleware(settings):
    settings.LEASEQUEUE = {"MIDDLEWARE": ["nowhere.Nothing"]}
    assert ids(configuration.middleware()) == ["E003"]


def test_job_types(settings):
    settings.LEASEQUEUE = {"JOBS": [{"name": "nowhere.nothing", "timeout": 0}]}
    assert ids(configuration.jobs()) == ["E004"]


@pytest.mark.parametrize("how", ["poll", "nudge", "notify"])
def test_notifications_where_there_are_none(connection, settings, db_kind, how):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": how}
    expected = ["W022"] if how == "notify" and db_kind != "postgres" else []
    assert ids(configuration.wakeup()) == expected


def test_the_name_of_the_command(monkeypatch):
    monkeypatch.setattr(configuration, "get_commands", lambda: {"runworker": "channels"})
    found = only(configuration.command_name)
    assert ids([found]) == ["W001"]
    assert "leasequeue worker" in found.hint


class Everywhere:
    """Answers every question with one alias, and lets migrations be made there alone."""

    def __init__(self, alias: str) -> None:
        self.db_for_read = self.db_for_write = lambda model, **hints: alias
        self.allow_migrate = lambda db, app_label, **hints: db == alias


class OurReads:
    """Sends reads of the queue's models to a replica."""

    def db_for_read(self, model, **hints):
        return "replica" if model._meta.app_label == "leasequeue" else None


class OurWrites:
    """Sends writes of the queue's models elsewhere."""

    def db_for_write(self, model, **hints):
        return "other" if model._meta.app_label == "leasequeue" else None


def test_a_router_that_reads_from_a_replica(case, settings):
    there = case()
    assert list(routers.reads(there)) == []
    settings.DATABASE_ROUTERS = [OurReads()]
    found = only(routers.reads, there)
    assert ids([found]) == ["W003"]
    assert "'default'" in found.what
    assert "'replica'" in found.what
    assert list(routers.writes()) == []


def test_a_router_that_writes_elsewhere(settings):
    settings.DATABASE_ROUTERS = [OurWrites()]
    assert ids(routers.writes()) == ["W004"]


def test_a_router_that_denies_the_tables(settings):
    """G10: the check says where the queue is, and where its tables may be."""
    settings.DATABASE_ROUTERS = [Everywhere("queue")]
    found = only(routers.migrations_allowed)
    assert ids([found]) == ["E005"]
    assert "is 'default'" in found.what
    settings.DATABASE_ROUTERS = [Everywhere("default")]
    assert list(routers.migrations_allowed()) == []


def test_business_rows_elsewhere(settings):
    settings.DATABASE_ROUTERS = [Everywhere("shop")]
    assert ids(routers.business_rows()) == ["W002"]


@isolate_apps("reports")
def test_a_foreign_key_to_job(monkeypatch):
    class Bound(models.Model):  # noqa: DJ008
        job = models.ForeignKey(Job, models.CASCADE, related_name="+")

        class Meta:
            app_label = "reports"

    class Loose(models.Model):  # noqa: DJ008
        job = models.ForeignKey(Job, models.CASCADE, related_name="+", db_constraint=False)
        other = models.ForeignKey(Bound, models.CASCADE)

        class Meta:
            app_label = "reports"

    monkeypatch.setattr(relations, "apps", Bound._meta.apps)
    found = only(relations.model_fields)
    assert ids([found]) == ["W005"]
    assert "reports.Bound.job" in found.what


def test_a_lease_without_room(settings):
    settings.LEASEQUEUE = {"LEASE": 1, "MIN_LEASE": 1}
    assert ids(bounds.leases()) == ["E006"]
    settings.LEASEQUEUE = {"LEASE": 60}
    assert list(bounds.leases()) == []


@pytest.mark.parametrize(("value", "expected"), [(False, ["E007"]), (True, [])])
def test_autocommit(monkeypatch, value, expected):
    monkeypatch.setitem(connections["default"].settings_dict, "AUTOCOMMIT", value)
    assert ids(bounds.autocommit()) == expected
