"""What goes wrong is one line and an exit code, whichever sub-command it is."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import DataError, IntegrityError, OperationalError, ProgrammingError

from django_leasequeue import enqueue
from django_leasequeue.cli.table import TABLE
from django_leasequeue.models import Job

READING = ["status", "jobs", "schedules", "recover", "resume mail", "cancel 1", "jobs 1"]
SECRET = "the secret"
#: Arguments without which a sub-command says nothing else.
NEEDED = {
    "enqueue": ["t"],
    "cancel": ["1"],
    "pause": ["q"],
    "resume": ["q"],
    "import": ["celery-beat"],
}


@pytest.fixture
def away(queue_db):
    """A database that answers every statement with an error of the test's choice."""
    errors = []

    def refuse(execute, sql, params, many, context):
        raise errors[-1]

    with queue_db.execute_wrapper(refuse):
        yield errors.append


@pytest.mark.parametrize("command", READING)
def test_a_database_that_is_away_is_one_line(away, leasequeue, command):
    away(OperationalError("could not\nconnect\x1b[2J"))
    ended = leasequeue(*command.split())
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "The database 'default' cannot be used: OperationalError: could not connect\\x1b[2J\n"
    )


@pytest.mark.parametrize("kind", [IntegrityError, DataError])
def test_errors_that_quote_rows_are_named_only(away, leasequeue, kind):
    away(kind(f"Duplicate entry {SECRET}"))
    ended = leasequeue("resume", "mail")
    assert (ended.code, ended.err.count(SECRET)) == (1, 0)
    assert kind.__name__ in ended.err


def test_a_table_that_is_not_there(away, leasequeue):
    away(ProgrammingError("relation leasequeue_job does not exist" + "x" * 1000))
    ended = leasequeue("jobs")
    assert ended.code == 1
    assert "leasequeue_job does not exist" in ended.err
    assert len(ended.err) < 500


@pytest.mark.parametrize("name", [name for name in TABLE if name != "worker"])
def test_an_unknown_alias_is_refused_and_the_known_are_named(queue_db, leasequeue, name):
    given = NEEDED.get(name, [])
    ended = leasequeue(name, *given, "--database", "now\x1bhere")
    assert (ended.code, ended.out) == (2, "")
    assert r"'now\x1bhere' is no alias in DATABASES. Known: default." in ended.err


def test_settings_that_are_wrong_are_refused(queue_db, leasequeue, settings):
    settings.LEASEQUEUE = {"LEASES": 60}
    ended = leasequeue("status")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"{ended.err.strip()}\n"
    assert "Unknown LEASEQUEUE setting: 'LEASES'" in ended.err


def test_keyword_options_work_as_for_every_command(queue_db, leasequeue, capsys):
    job_id = enqueue("arranged").id
    call_command("leasequeue", "jobs", json=True, limit=1)
    assert f'"id": {job_id}' in capsys.readouterr().out
    with pytest.raises(TypeError, match="Unknown option"):
        call_command("leasequeue", "jobs", colour=True)


def test_no_sub_command_is_a_usage_error(queue_db, leasequeue):
    for arguments in [(), ("leap",), ("jobs", "--nope")]:
        ended = leasequeue(*arguments)
        assert ended.code != 0 and ended.err.startswith("Error: ")
    assert not Job.objects.exists()
