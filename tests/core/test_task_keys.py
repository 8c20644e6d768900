"""A task's key that another transaction has just given to a job: the same job, whatever is seen."""

from __future__ import annotations

import pytest
from django.db import transaction

from django_leasequeue.backend.compat import TaskResultStatus
from django_leasequeue.models import Job
from tests.backend import sample

pytestmark = [
    pytest.mark.usefixtures("connection"),
    pytest.mark.only_on("mariadb", "mysql"),
]


def test_under_a_snapshot_that_does_not_show_the_job(connection, session, as_default):
    with as_default(session("repeatable")), transaction.atomic():
        assert not Job.objects.exists()
        with as_default(connection):
            first = sample.once_for.enqueue(1)
        second = sample.once_for.enqueue(1)
    assert (second.id, second.args, second.status) == (first.id, [1], TaskResultStatus.READY)
