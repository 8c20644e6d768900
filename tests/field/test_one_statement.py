"""A worker's own connection takes one statement at a time, whatever the project's does (S1)."""

from __future__ import annotations

from contextlib import closing

import pytest
from django.db import DatabaseError

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from django_leasequeue.runtime.connections import open_control

# psycopg sends what it is given, and the server takes it.
pytestmark = pytest.mark.only_on("mariadb", "mysql", "sqlite")


def test_two_statements_in_one_are_refused(connection):
    job_id = enqueue("t").id
    with closing(open_control("default", 60)) as control, control.cursor() as cursor:
        with pytest.raises(DatabaseError):
            cursor.execute("SELECT 1; UPDATE leasequeue_job SET status = 'done'")
        cursor.execute("SELECT status FROM leasequeue_job")
        assert [*cursor.fetchall()] == [("ready",)]
    assert Job.objects.get(pk=job_id).status == "ready"


def test_rows_that_are_found_count_though_nothing_changes(connection):
    """As on Django's own connections; without its flag MySQL counts what has changed."""
    job_id = enqueue("t").id
    with closing(open_control("default", 60)) as control, control.cursor() as cursor:
        cursor.execute("UPDATE leasequeue_job SET job_type = 't' WHERE id = %s", [job_id])
        assert cursor.rowcount == 1
