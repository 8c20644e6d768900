"""What a handler leaves on its way: effects that outlive its death, and its progress."""

from __future__ import annotations

import pytest

from django_leasequeue import enqueue
from django_leasequeue.models import JobEffect
from reports.models import GeneratedReport
from tests.process import rows
from tests.waiting import wait_until

MODES = [pytest.param(("--solo",), id="solo"), pytest.param((), id="children")]


def test_an_effect_of_a_job_that_crashes_around_it(queue_db, worker_process):
    """Killed in the block nothing is kept; killed between the effect and the end it is known."""
    job = enqueue("proc.effects", max_attempts=5)
    worker = worker_process("--drain")
    assert worker.wait() == 0
    row = rows.job(job.id)
    assert (row.status, row.result) == ("done", [False])
    assert rows.outcomes(job.id) == ["crashed", "crashed", "completed"]
    (report,) = GeneratedReport.objects.all()
    assert report.result_json == {"claim": 2}
    (effect,) = JobEffect.objects.all()
    assert (effect.job_id, effect.name, effect.number) == (job.id, "charge", 2)


@pytest.mark.parametrize("mode", MODES)
def test_progress_is_seen_while_the_handler_runs(queue_db, worker_process, gate, mode):
    job = enqueue("proc.progress", {"gate": str(gate("a"))})
    worker = worker_process(*mode)
    seen = {"fraction": 0.5, "text": "page 50"}
    wait_until(lambda: rows.job(job.id).progress == seen)
    gate("a").say("go")
    wait_until(lambda: rows.job(job.id).progress == {"fraction": None, "text": "tidying up"})
    assert rows.job(job.id).status == "reserved"
    gate("a").say("end")
    worker.wait_event("job_completed", job_id=job.id)
