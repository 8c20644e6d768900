"""S2: failed(payload, error), for cleaning up and for alarms."""

from __future__ import annotations

import logging

import pytest

from django_leasequeue import Fixed, JobError, Reject, enqueue
from django_leasequeue.outcomes import End

pytestmark = pytest.mark.usefixtures("connection")


def test_failed_reads_payload_and_error(declare, finish, buried, caplog):
    """S2's example: log the type, the id, the error's message and the payload's data."""

    @declare("invoice.pdf", max_attempts=2, backoff=Fixed(0))
    class InvoicePdf:
        def handle(self, invoice_id):
            raise JobError("the printer is out of paper")

        def failed(self, context, error):
            logging.getLogger("shop").critical(
                "%s %s %s %s", context.job_type, context.job_id, error, context.payload
            )

    made = enqueue("invoice.pdf", {"invoice_id": 7})
    finish()
    assert caplog.messages == []  # attempts remain
    assert finish()[1].status == "dead"
    assert buried(made.id).end is End.COMPLETED
    said = "JobError: the printer is out of paper"
    assert caplog.messages[-1] == f"invoice.pdf {made.id} {said} {{'invoice_id': 7}}"


def test_failed_runs_after_a_rejection_by_the_handler(declare, finish, buried):
    """A permanent failure is the end as well."""
    seen = []
    declare("t", failed=lambda context, error: seen.append(str(error)))(reject)
    made = enqueue("t")
    assert finish()[1].status == "dead"
    buried(made.id)
    assert seen == ["Reject: no such invoice"]


def reject():
    raise Reject("no such invoice")
