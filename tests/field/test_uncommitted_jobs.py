"""C11: a job is there for workers from its COMMIT on, and never if there is none."""

from __future__ import annotations

import pytest
from django.db import transaction

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.core.arrange import job
from tests.core.reports import make_report, reports
from tests.faults import watching
from tests.field.workers import working


class Undo(Exception):
    """Rolls a view's transaction back."""


@transaction.atomic
def view() -> None:
    make_report()
    enqueue("arranged", key="k")
    raise Undo


@pytest.mark.only_on("mariadb", "mysql", "postgres")  # on SQLite a worker waits for the writer
def test_a_worker_that_polls_before_and_after_the_commit(connection, declare):
    declare("arranged")(lambda: None)
    with watching() as moments, working():
        with transaction.atomic():
            made = enqueue("arranged")
            polls = len(moments.named("claim_empty"))
            moments.wait("claim_empty", count=polls + 5)
            assert moments.named("job_claimed") == []
        moments.wait("job_completed", job_id=made.id)
    assert job(made.id).status == "done"


def test_a_view_that_raises_after_enqueue(connection, declare):
    """With ATOMIC_REQUESTS or in atomic(): the job goes with the rows it was enqueued with."""
    declare("arranged")(lambda: None)
    with watching() as moments, working():
        with pytest.raises(Undo):
            view()
        polls = len(moments.named("claim_empty"))
        moments.wait("claim_empty", count=polls + 5)
        assert moments.named("job_claimed") == []
    assert (Job.objects.count(), reports()) == (0, [])
