"""A solo worker that stops gives back at once what it has claimed ahead."""

from __future__ import annotations

from django_leasequeue import enqueue_many
from django_leasequeue.models import Job
from django_leasequeue.runtime.worker import Worker


def test_what_waits_when_it_stops_is_ready_again(connection, declare):
    worker = Worker(solo=True)
    runs = []

    @declare("t")
    def handler():
        runs.append(1)
        if Job.objects.filter(status="reserved").count() > 1:  # others wait behind this one
            worker.stop()

    enqueue_many([("t", {}, {})] * 200)
    assert worker.run() == 0
    found = sorted(Job.objects.values_list("status", "attempts", "claims"))
    done, left = found[: len(runs)], found[len(runs) :]
    assert set(done) == {("done", 1, 1)}
    assert {row[:2] for row in left} == {("ready", 0)}
    assert ("ready", 0, 1) in left  # it was claimed, and did not begin
