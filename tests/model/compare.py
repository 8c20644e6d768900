"""The rows of the queue, compared with the model, and with what they were before."""

from __future__ import annotations

from collections.abc import Mapping

from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.statuses import TRANSITIONS, Status
from tests.model.model import Modelled

#: Of each job: its status and its claims.
Before = dict[int, tuple[str, int]]


def compare(jobs: Mapping[int, Modelled], before: Before) -> Before:
    """Assert that the queue is as the model says, and got there as it may; return what it is."""
    rows = {row.pk: row for row in Job.objects.all()}
    assert rows.keys() == jobs.keys()
    for job in jobs.values():
        _compare_job(rows[job.id], job)
    _compare_attempts(jobs)
    for number, (status, claims) in before.items():
        if number in rows:
            now = rows[number]
            assert now.claims >= claims, "claims fell"
            legal = TRANSITIONS[Status(status)]
            assert now.status == status or now.status in legal, f"{status} became {now.status}"
    return {number: (row.status, row.claims) for number, row in rows.items()}


def _compare_job(row: Job, job: Modelled) -> None:
    counters = ("status", "attempts", "crashes", "claims", "releases", "bury_tries")
    found = {name: getattr(row, name) for name in counters}
    assert found == {name: getattr(job, name) for name in counters}, f"job {job.id}"
    token = None if row.lease_token is None else bytes(row.lease_token)
    assert token == job.token
    # A deadline is there while it is reserved, or while its burial is open.
    assert (row.lease_until is not None) is (job.status == "reserved" or job.waits)
    live = job.key is not None and job.key[0] == "finished" and job.has_key
    assert (row.live_key is not None) is live


def _compare_attempts(jobs: Mapping[int, Modelled]) -> None:
    """One row per attempt that has ended and leaves one, under the token of its claim."""
    found = JobAttempt.objects.values_list("job_id", "number", "outcome", "token")
    wanted = [
        (job.id, row.number, row.outcome, row.token) for job in jobs.values() for row in job.rows
    ]
    assert sorted((*row[:3], bytes(row[3])) for row in found) == sorted(wanted)
