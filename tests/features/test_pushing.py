"""S2: push(payload, queue, delay) and later(seconds); S3: enqueue(kind, payload, dedupKey)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs, job, run

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def seconds_until_due(made):
    row = job(made.id)
    return (row.available_at - row.created_at).total_seconds()


@pytest.fixture
def pdf(declare):
    """A declared job type."""
    return declare("invoice.pdf", queue="pdf")(lambda invoice_id: {"made": invoice_id})


def test_push_with_a_queue_and_no_delay(pdf, finish):
    made = pdf.using(queue="reports", delay=0).enqueue(invoice_id=7)
    assert job(made.id).queue_name == "reports"
    assert seconds_until_due(made) < 1
    assert finish()[1].result == {"made": 7}


def test_push_to_the_declared_queue(pdf):
    assert job(pdf.enqueue(7).id).queue_name == "pdf"


@pytest.mark.parametrize("delay", [3600, timedelta(hours=1)])
def test_later(pdf, connection, due_again, delay):
    """Not claimed before its time, and then like any other."""
    made = pdf.using(delay=delay).enqueue(invoice_id=7)
    assert abs(seconds_until_due(made) - 3600) < 5
    assert claim_jobs(connection) == []
    due_again(made.id)
    assert [one.job_id for one in claim_jobs(connection)] == [made.id]


def test_dedup_key(declare, finish):
    """One job for a key, however often it is asked for, while it waits and when it is done."""
    declare("mail.send")(lambda to: None)
    made = [enqueue("mail.send", {"to": to}, key="mail:7") for to in ("a@b.example", "other")]
    assert [(one.id, one.created) for one in made] == [(made[0].id, True), (made[0].id, False)]
    assert finish()[1].payload == {"to": "a@b.example"}
    assert enqueue("mail.send", {"to": "x"}, key="mail:7").id == made[0].id
    assert Job.objects.count() == 1


def test_a_test_sees_what_was_enqueued(pdf):
    """S2's assertPushed: the queue is a table, also within a test's transaction."""
    pdf.enqueue(invoice_id=7)
    assert Job.objects.filter(job_type=pdf.name, payload__invoice_id=7).count() == 1
    assert pdf(7) == {"made": 7}  # and the handler itself is a plain call


def test_data_of_the_application_travels_with_the_job(connection, declare, finish):
    """S3: an application may add columns; here its own data is in `context`, from any language."""
    seen = []
    declare("t", takes_context=True)(lambda context: seen.append(context.context))
    run(connection, "INSERT INTO leasequeue_job (job_type, context) VALUES ('t', '{\"trace\": 9}')")
    assert finish()[1].status == "done"
    assert seen == [{"trace": 9}]
