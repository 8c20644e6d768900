"""Migrations, columns, types, indexes and foreign keys of the tables as they are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from django.db.migrations.loader import MigrationLoader

from django_leasequeue.doctor import plans, relations, tables
from django_leasequeue.models import Job, JobAttempt
from tests.core.arrange import run
from tests.doctor.asking import ids, only

SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")
INDEXES = {index.name: index for index in Job._meta.indexes}


@contextmanager
def without_index(connection, name):
    with connection.schema_editor() as editor:
        editor.remove_index(Job, INDEXES[name])
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.add_index(Job, INDEXES[name])


def test_sound_tables(case):
    sound = case()
    for diagnosis in (
        tables.migrations,
        tables.columns,
        tables.types,
        tables.indexes,
        relations.foreign_keys,
    ):
        assert list(diagnosis(sound)) == [], diagnosis


def test_a_migration_to_come(case, monkeypatch):
    loader = MigrationLoader(case().connection)
    key = ("leasequeue", "0999_future")
    loader.graph.nodes = {**loader.graph.nodes, key: None}
    monkeypatch.setattr(tables, "MigrationLoader", lambda connection: loader)
    assert "0999_future" in only(tables.migrations, case()).what


def test_a_missing_table_and_a_missing_column(connection, case):
    with connection.schema_editor() as editor:
        editor.alter_db_table(Job, "leasequeue_deadgroup", "leasequeue_away")
    run(connection, "ALTER TABLE leasequeue_worker RENAME COLUMN pid TO pid_away")
    try:
        found = only(tables.columns, case())
        assert ids([found]) == ["E015"]
        assert "leasequeue_deadgroup, leasequeue_worker.pid." in found.what
    finally:
        run(connection, "ALTER TABLE leasequeue_worker RENAME COLUMN pid_away TO pid")
        with connection.schema_editor() as editor:
            editor.alter_db_table(Job, "leasequeue_away", "leasequeue_deadgroup")


@pytest.mark.parametrize("name", sorted(INDEXES))
def test_a_dropped_index(connection, case, name):
    with without_index(connection, name):
        found = only(tables.indexes, case())
        assert ids([found]) == ["E016"]
        assert found.what == f"Missing or altered indexes: {name}."


def test_an_index_of_other_columns(connection, case):
    name = "leasequeue_job_recover"
    with without_index(connection, name):
        run(connection, f"CREATE INDEX {name} ON leasequeue_job (status, id)")
        try:
            assert name in only(tables.indexes, case()).what
        finally:
            place = " ON leasequeue_job" if connection.vendor == "mysql" else ""
            run(connection, f"DROP INDEX {name}{place}")


@SERVERS
def test_a_dropped_unique_constraint(connection, case):
    (constraint, _other) = JobAttempt._meta.constraints
    with connection.schema_editor() as editor:
        editor.remove_constraint(JobAttempt, constraint)
    try:
        assert constraint.name in only(tables.indexes, case()).what
    finally:
        with connection.schema_editor() as editor:
            editor.add_constraint(JobAttempt, constraint)


ALTERED = {
    "mysql": (
        "ALTER TABLE leasequeue_worker MODIFY stopped_at datetime NULL",
        "ALTER TABLE leasequeue_worker MODIFY stopped_at datetime(6) NULL",
    ),
    "postgresql": (
        "ALTER TABLE leasequeue_worker ALTER stopped_at TYPE timestamp",
        "ALTER TABLE leasequeue_worker ALTER stopped_at TYPE timestamptz",
    ),
}


@SERVERS
def test_an_altered_type(connection, case, changed):
    changed(*ALTERED[connection.vendor])
    found = only(tables.types, case())
    assert ids([found]) == ["W018"]
    assert "leasequeue_worker.stopped_at is " in found.what


def test_a_foreign_key_of_somebody_else_s(connection, case, changed):
    engine = " ENGINE = InnoDB" if connection.vendor == "mysql" else ""
    changed(
        "CREATE TABLE bound (job bigint, CONSTRAINT bound_job FOREIGN KEY (job) "
        f"REFERENCES leasequeue_job (id)){engine}",
        "DROP TABLE bound",
    )
    found = only(relations.foreign_keys, case())
    assert ids([found]) == ["W006"]
    assert found.what.startswith("bound has ")


def test_plans_of_a_dropped_index(connection, case):
    """A server refuses a plan with an index that is not there, or sorts."""
    with without_index(connection, "leasequeue_job_recover"):
        found = list(plans.plans(case()))
        assert ids(found) == ["W013"]
        assert "a recovery" in found[0].what
    with without_index(connection, "leasequeue_job_claim"):
        assert [one for one in plans.plans(case()) if "a claim" in one.what]
