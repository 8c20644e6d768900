"""A draining worker ends when nothing is due, wherever what it ran has put new jobs."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from tests.core.arrange import job
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")


@pytest.mark.parametrize("where", [{"queue": "another"}, {"priority": -7}], ids=str)
def test_a_job_that_a_handler_enqueues_in_a_new_lane(connection, declare, where):
    made: list[int] = []
    declare("nested")(lambda: None)
    declare("parent")(lambda: made.append(enqueue("nested", **where).id))
    enqueue("parent")
    drain()
    assert [job(job_id).status for job_id in made] == ["done"]
