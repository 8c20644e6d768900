"""`Worker(...)` as a class: run, stop, abort, turn and close from a test, with children.

Threads, processes and connections that are left behind are the fixtures' to find; open descriptors
are counted here.
"""

from __future__ import annotations

import threading
from collections import Counter
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from django_leasequeue import Worker, enqueue, enqueue_many
from django_leasequeue.models import Job, JobAttempt
from tests.faults import Rival, watching

OPTIONS = {"processes": 2, "poll_min": 0.01, "poll_max": 0.1}


@pytest.fixture(autouse=True)
def _handlers(queue_db, monkeypatch):
    """Let children have the handlers of the process tests, which this process does not have."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.process.settings")
    server: Any = forkserver._forkserver
    server._stop()
    yield
    server._stop()


def fill(count):
    enqueue_many([("proc.note", {}, {})] * count)


def descriptors():
    """Return how many descriptors of each kind this process has open."""
    names = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            names.append(str(path.readlink()).split(":")[0])
        except OSError:  # the one that reads the folder
            continue
    return Counter(names)


def drained_by_run():
    fill(5)
    assert Worker(drain=True, **OPTIONS).run() == 0
    assert set(Job.objects.values_list("status", flat=True)) == {"done"}


def drained_by_turns():
    fill(5)
    worker = Worker(drain=True, **OPTIONS)
    try:
        while (wait := worker.turn()) is not None:
            worker.crew.wait(worker.wakeup, wait)
    finally:
        worker.close()
    assert set(Job.objects.values_list("status", flat=True)) == {"done"}


def closed_after_a_turn():
    worker = Worker(**OPTIONS)
    worker.turn()
    worker.close()


def closed_unused():
    Worker(**OPTIONS).close()


@pytest.mark.parametrize(
    "use", [drained_by_run, drained_by_turns, closed_after_a_turn, closed_unused]
)
def test_nothing_is_left_behind(use):
    drained_by_run()  # multiprocessing keeps its forkserver, and what leads there
    before, threads = descriptors(), threading.active_count()
    for _ in range(3):
        use()
    assert (descriptors(), threading.active_count()) == (before, threads)


def running_in_a_thread(worker):
    def work():
        try:
            return worker.run()
        finally:
            connections.close_all()

    return Rival(work)


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_stop_from_another_thread_lets_the_handler_finish(gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = Worker(grace=60, **OPTIONS)
    rival = running_in_a_thread(worker)
    gate("a").wait("started")
    worker.stop()
    gate("a").wait("stopping")
    assert not rival.ended
    gate("a").say("go")
    assert rival.result() == 0
    assert Job.objects.get(pk=job_id).status == "done"


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_abort_from_another_thread_gives_the_job_back(gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = Worker(grace=600, **OPTIONS)
    rival = running_in_a_thread(worker)
    gate("a").wait("started")
    worker.abort()
    assert rival.result() == 0
    assert Job.objects.get(pk=job_id).status == "ready"
    assert JobAttempt.objects.get().outcome == "released"


@pytest.mark.leaves_reserved
@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_close_ends_children_with_their_handlers(gate):
    """As a kill would: the lease runs out, and the next worker recovers the job."""
    enqueue("proc.wait", {"gate": str(gate("a"))})
    worker = Worker(**OPTIONS)
    while not gate("a").said("started"):
        worker.crew.wait(worker.wakeup, worker.turn() or 0.01)
    worker.close()
    assert Job.objects.get().status == "reserved"


def test_an_idle_worker_stops_at_once():
    worker = Worker(processes=2, poll_min=60, poll_max=60)
    with watching() as seen:
        rival = running_in_a_thread(worker)
        seen.wait("claim_empty")
        worker.stop()
        assert rival.result(timeout=10) == 0


def test_two_workers_side_by_side():
    fill(40)
    rivals = [running_in_a_thread(Worker(drain=True, **OPTIONS)) for _ in range(2)]
    assert [rival.result() for rival in rivals] == [0, 0]
    assert set(Job.objects.values_list("status", "attempts")) == {("done", 1)}
    assert JobAttempt.objects.count() == 40
