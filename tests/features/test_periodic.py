"""S3: a kind that is enqueued every so many seconds."""

from __future__ import annotations

from datetime import timedelta

from django_leasequeue.models import Job, Schedule
from tests.faults import watching
from tests.field.workers import working
from tests.waiting import wait_until


def test_every(connection, declare):
    """`every('mail.expire', 3600)`: no process but the workers, and a job for each hour, once."""
    ran = []
    declare("mail.expire", every=3600)(lambda: ran.append("run"))
    with watching() as moments, working(), working():
        wait_until(Schedule.objects.filter(name="mail.expire").exists)
        assert not Job.objects.exists()
        # As an hour later.
        due = Schedule.objects.get().next_tick
        Schedule.objects.update(next_tick=due - timedelta(hours=1))
        moments.wait("job_completed", job_type="mail.expire")
        moments.wait("schedule_ticked", schedule="mail.expire")
    assert ran == ["run"]
    job = Job.objects.get()
    assert (job.schedule, job.tick_at.minute, job.tick_at.second) == ("mail.expire", 0, 0)
    assert Schedule.objects.get().last_tick == job.tick_at
