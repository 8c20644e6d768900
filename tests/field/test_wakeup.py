"""A worker that would wait for an hour is woken by an enqueue."""

from __future__ import annotations

from multiprocessing import forkserver
from typing import Any

import pytest

from django_leasequeue import enqueue
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.models import Job
from django_leasequeue.runtime.ticking import Ticking
from tests.faults import watching
from tests.field.workers import working
from tests.waiting import wait_until

WAYS = ["nudge", pytest.param("notify", marks=pytest.mark.only_on("postgres"))]
SLOW = {"poll_min": 3600, "poll_max": 3600}


@pytest.fixture
def wakeup(settings, tmp_path):
    def choose(how):
        settings.LEASEQUEUE = {
            **settings.LEASEQUEUE,
            "WAKEUP": how,
            "NUDGE_FOLDER": str(tmp_path / "n"),
        }

    return choose


@pytest.fixture
def _handlers(queue_db, monkeypatch):
    """Let children have the handlers of the process tests."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "tests.process.settings")
    server: Any = forkserver._forkserver
    server._stop()
    yield
    server._stop()


@pytest.fixture
def _no_schedules(monkeypatch):
    """Schedules are looked at every few seconds, and jobs with them."""
    monkeypatch.setattr(Ticking, "seconds_left", lambda self: 3600.0)


@pytest.mark.parametrize("solo", [True, False], ids=["solo", "children"])
@pytest.mark.parametrize("how", WAYS)
@pytest.mark.usefixtures("_handlers", "_no_schedules")
def test_an_enqueue_ends_the_wait(declare, wakeup, how, solo):
    declare("proc.note")(lambda: None)

    wakeup(how)
    with watching() as seen, working(solo=solo, **SLOW):
        seen.wait("claim_empty")
        for number in range(3):  # in a queue that the worker has not met, and in known ones
            made = enqueue("proc.note", queue=f"q{number % 2}")
            wait_until(lambda made=made: Job.objects.get(pk=made.pk).status == "done")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.usefixtures("_no_schedules")
def test_an_enqueue_right_after_a_vain_ring(connection, declare, wakeup, monkeypatch, how):
    """Another one was faster: deafness lasts for its time, not for the whole wait."""
    declare("proc.note")(lambda: None)
    wakeup(how)
    with watching() as seen, working(**SLOW):
        seen.wait("claim_empty")
        with monkeypatch.context() as patched:
            patched.setattr(Lanes, "ordered", lambda self, connection: [])
            enqueue("proc.note")
            seen.wait("claim_empty", count=2)
        made = enqueue("proc.note")
        wait_until(lambda: Job.objects.get(pk=made.pk).status == "done")


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.usefixtures("_no_schedules")
def test_an_enqueue_while_a_job_runs(connection, declare, wakeup, how):
    """In a queue that the look after it does not know of yet."""
    made = []
    declare("proc.note")(lambda: None)

    @declare("proc.mother")
    def mother():
        made.append(enqueue("proc.note", queue="new"))

    wakeup(how)
    with watching() as seen, working(**SLOW):
        seen.wait("claim_empty")
        enqueue("proc.mother", queue="old")
        wait_until(lambda: made and Job.objects.get(pk=made[0].pk).status == "done")


def test_a_worker_without_its_socket_polls(connection, declare, wakeup, tmp_path):
    declare("proc.note")(lambda: None)
    (tmp_path / "n").touch()
    wakeup("nudge")
    with watching() as seen, working():
        seen.wait("wakeup_refused")
        made = enqueue("proc.note")
        wait_until(lambda: Job.objects.get(pk=made.pk).status == "done")
