"""A solo worker that stops gives back at once what it has claimed ahead."""

from __future__ import annotations

import time

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from django_leasequeue.runtime.worker import Worker


def test_what_waits_when_it_stops_is_ready_again(connection, declare):
    worker = Worker(solo=True)
    runs = []

    @declare("t")
    def handler():
        time.sleep(0.02)  # two of them are claimed together, and one waits for the next turn
        runs.append(1)
        if len(runs) == 2:
            worker.stop()

    for _ in range(6):
        enqueue("t")
    assert worker.run() == 0
    found = sorted(Job.objects.values_list("status", "attempts", "claims"))
    assert found[:2] == [("done", 1, 1)] * 2
    assert {row[:2] for row in found[2:]} == {("ready", 0)}
    assert ("ready", 0, 1) in found  # it was claimed, and did not begin
