"""A21: time limits and delays of weeks, in a real worker: no clock or poll overflows."""

from __future__ import annotations

from datetime import timedelta

from django_leasequeue import enqueue
from tests.process import rows

FORTY_DAYS = 40 * 86_400.0


def test_a_limit_and_a_delay_of_forty_days(queue_db, worker_process):
    done = enqueue("proc.note", timeout=FORTY_DAYS).id
    failed = enqueue("proc.fail_for_weeks", timeout=FORTY_DAYS).id
    later = enqueue("proc.note", delay=FORTY_DAYS).id
    worker = worker_process("--max-jobs", "2")
    assert worker.wait() == 0
    assert (rows.job(done).status, rows.job(later).status) == ("done", "ready")
    row = rows.job(failed)
    assert (row.status, rows.outcomes(failed)) == ("ready", ["failed"])
    assert row.available_at - row.updated_at > timedelta(seconds=FORTY_DAYS - 60)
    assert worker.lines == []
