"""The contract of N and N-1: what a release knew of the tables stays true in all later ones."""

from __future__ import annotations

import copy
from functools import reduce
from typing import Any

import pytest
from django.db.migrations import Migration, RunSQL

from django_leasequeue import __version__
from tests.test_docs import logged_events
from tests.upgrade import HERE, RELEASES, read
from tests.upgrade.schema import APP, breaks, hasty, later_migrations, migrations, schema_after

JOB = "leasequeue_job"
PRESENT = schema_after(migrations()[-1])


def test_the_version_that_is_to_be_released_has_its_folder():
    """`make snapshot` writes it, and writes it anew until the version is released."""
    assert __version__ in RELEASES
    for release in RELEASES:
        assert {path.stem for path in (HERE / release).iterdir()} == {
            "log",
            "rows",
            "schema",
            "seen",
        }


@pytest.mark.parametrize("release", RELEASES)
def test_the_migrations_of_a_release_are_as_they_were(release):
    frozen = read(release, "schema")
    names = frozen["migrations"]
    assert migrations()[: len(names)] == names
    assert schema_after(names[-1]) == frozen["tables"]


@pytest.mark.parametrize("release", RELEASES)
def test_processes_of_a_release_can_go_on_here(release):
    assert breaks(read(release, "schema")["tables"], PRESENT) == []


def test_later_migrations_are_one_operation_each_and_can_be_undone():
    first = read(RELEASES[0], "schema")["migrations"]
    assert [what for one in later_migrations(first) for what in hasty(one)] == []


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        ([], "0 operations"),
        ([RunSQL("SELECT 1", ""), RunSQL("SELECT 1", "")], "2 operations: split it"),
        ([RunSQL("SELECT 1")], "cannot be undone"),
    ],
)
def test_a_hasty_migration_is_seen(operations, says):
    migration = Migration("0002_hasty", APP)
    migration.operations = operations
    (found,) = hasty(migration)
    assert says in found


@pytest.mark.parametrize("release", RELEASES)
def test_log_events_keep_their_names_and_fields(release):
    now = logged_events()
    for event, fields in read(release, "log").items():
        assert set(fields) <= now[event], event


def changed(*keys: str, to: Any) -> dict[str, Any]:
    """Return the schema with one thing in it changed, or taken out when `to` is None."""
    schema = copy.deepcopy(PRESENT)
    inner: dict[str, Any] = reduce(lambda found, key: found[key], keys[:-1], schema)
    if to is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = to
    return schema


NEW = {"type": "django.db.models.IntegerField"}
COLUMNS = (JOB, "columns")
PRIORITY = PRESENT[JOB]["columns"]["priority"]
JOB_TYPE = PRESENT[JOB]["columns"]["job_type"]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (changed("leasequeue_queue", to=None), "leasequeue_queue is gone"),
        (changed(*COLUMNS, "progress", to=None), "leasequeue_job.progress is gone"),
        (changed(*COLUMNS, "priority", to={**PRIORITY, "db_default": "1"}), "priority is another"),
        (changed(*COLUMNS, "priority", to={**PRIORITY, **NEW}), "priority is another column"),
        (changed(*COLUMNS, "job_type", to={**JOB_TYPE, "max_length": "9"}), "job_type is another"),
        (changed(*COLUMNS, "fresh", to=NEW), "fresh has no default in the database"),
        (changed(*COLUMNS, "fresh", to={**NEW, "null": "True", "unique": "True"}), "is unique"),
        (changed(JOB, "constraints", "leasequeue_job_key", to=None), "not constrain as it did"),
        (changed(JOB, "constraints", "fresh", to="Check()"), "fresh may refuse what was written"),
    ],
)
def test_what_would_stop_them_is_said(after, says):
    (found,) = breaks(PRESENT, after)
    assert says in found


@pytest.mark.parametrize(
    "after",
    [
        changed("leasequeue_fresh", to={"columns": {}, "constraints": {}, "indexes": {}}),
        changed(*COLUMNS, "fresh", to={**NEW, "db_default": "7"}),
        changed(*COLUMNS, "fresh", to={**NEW, "null": "True"}),
        changed(*COLUMNS, "job_type", to={**JOB_TYPE, "max_length": "512"}),
        changed(JOB, "indexes", "fresh", to="Index()"),
        changed(JOB, "indexes", "leasequeue_job_type", to=None),
    ],
)
def test_what_is_added_stops_nobody(after):
    assert breaks(PRESENT, after) == []
