"""S2: a job that need not run ends as a success, and is logged as skipped."""

from __future__ import annotations

import pytest

from django_leasequeue import JobResult, Skip, enqueue
from reports.models import GeneratedReport
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report
from tests.faults import watching
from tests.field.workers import drain

pytestmark = pytest.mark.usefixtures("connection")


def test_a_database_flag_skips_what_is_done(declare, finish):
    """S2's pattern: mark a row as processed, and look at the mark first."""
    made = make_report("invoice 7", result_json={"pdf": False})
    runs = []

    @declare("invoice.pdf")
    def invoice_pdf(report_id):
        report = GeneratedReport.objects.get(pk=report_id)
        if report.result_json["pdf"]:
            return JobResult.skipped("PDF already generated")
        runs.append(report_id)
        report.result_json = {"pdf": True}
        report.save()
        return JobResult.success()

    ids = [enqueue("invoice.pdf", {"report_id": made.pk}).id for _ in range(2)]
    finish()
    finish()
    assert [job(job_id).status for job_id in ids] == ["done", "done"]
    assert [outcomes(job_id) for job_id in ids] == [["completed"], ["skipped"]]
    assert runs == [made.pk]


@pytest.mark.parametrize("way", ["returned", "raised"])
def test_skipped_is_a_success_that_is_logged_as_skipped(declare, way):
    @declare("t")
    def handler():
        if way == "raised":
            raise Skip("not needed")
        return JobResult.skipped("not needed")

    made = enqueue("t")
    with watching() as moments:
        drain()
        assert moments.wait("job_skipped", job_id=made.id)
    assert (job(made.id).status, outcomes(made.id)) == ("done", ["skipped"])


def test_the_data_of_a_success_is_the_result(declare, finish):
    declare("t")(lambda: JobResult.success({"pdf_path": "a.pdf"}))
    enqueue("t")
    assert finish()[1].result == {"pdf_path": "a.pdf"}
