"""Tasks of django.tasks as what an import aims at: their payload is the call itself."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from django_leasequeue.backend.compat import task_backends
from django_leasequeue.models import Job, Schedule
from django_leasequeue.registry import registry
from django_leasequeue.testing import run_jobs
from tests.backend import sample
from tests.importers import test_tasks_db as waiting

SAMPLE = sample.__name__


def make(models, name, *args, **kwargs):
    call = {"args": list(args), "kwargs": kwargs}
    return waiting.make(models, task_path=f"{SAMPLE}.{name}", args_kwargs=call)


def result_of(job):
    return task_backends["default"].get_result(str(job.pk))


def test_a_waiting_task_is_called_as_it_was_enqueued(tasks_db, leasequeue):
    for args, kwargs in (([1, 2], {}), ([[1, 2], {}], {}), ([1], {"second": 2})):
        make(tasks_db, "pair", *args, **kwargs)
    ended = leasequeue("import", "django-tasks-db", "--mark")
    assert ended.code == 0, ended.out
    run_jobs(raise_errors=True)
    results = [result_of(job).return_value for job in Job.objects.all()]
    assert sorted(results, key=str) == [[1, 2], [1, 2], [[1, 2], {}]]


def test_a_task_that_takes_its_context(tasks_db, leasequeue):
    make(tasks_db, "tell_attempt", note="n")
    assert leasequeue("import", "django-tasks-db").code == 0
    run_jobs(raise_errors=True)
    job = Job.objects.get()
    assert result_of(job).return_value == [1, str(job.pk), "n"]


def test_a_dry_run_leaves_what_a_run_leaves(tasks_db, leasequeue):
    make(tasks_db, "double", "secret", 2)
    make(tasks_db, "double", secret=1)
    for arguments in (("--dry-run",), ()):
        ended = leasequeue("import", "django-tasks-db", *arguments)
        assert (ended.code, Job.objects.count()) == (1, 0)
        assert "left: 2" in ended.lines
        assert "too many positional arguments" in ended.out


def test_a_task_outside_a_module_called_tasks_is_found(tasks_db, leasequeue):
    registry.remove(f"{SAMPLE}.double")
    make(tasks_db, "double", 3)
    assert leasequeue("import", "django-tasks-db").code == 0
    assert Job.objects.get().payload == {"args": [3], "kwargs": {}}


def test_a_task_of_another_backend_keeps_it(tasks_db, leasequeue):
    declared: Any = registry.get(f"{SAMPLE}.double")
    object.__setattr__(declared.task, "backend", "lease")
    try:
        make(tasks_db, "double", 3)
        assert leasequeue("import", "django-tasks-db").code == 0
    finally:
        object.__setattr__(declared.task, "backend", "default")
    assert Job.objects.get().payload == {"args": [3], "kwargs": {}, "backend": "lease"}


def test_a_module_that_raises_holds_up_no_other_row(tasks_db, leasequeue, monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("raise OSError('secret')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("django_leasequeue.backend.discovery._is_of_project", lambda _: True)
    waiting.make(tasks_db, task_path="broken.send")
    make(tasks_db, "double", 3)
    ended = leasequeue("import", "django-tasks-db")
    sys.modules.pop("broken", None)
    assert (ended.code, Job.objects.count()) == (1, 1)
    assert "the module of broken.send raises OSError" in ended.out
    assert "secret" not in ended.out


def test_schedules_of_tasks(celery_beat, django_q2, leasequeue):
    minute = celery_beat["IntervalSchedule"].objects.create(every=1, period="minutes")
    celery_beat["PeriodicTask"].objects.create(
        name="a", task="shop.pair", interval=minute, args="[1]", kwargs='{"second": 2}'
    )
    schedules = django_q2["Schedule"]
    schedules.objects.bulk_create(
        [schedules(name="b", func="shop.pair", args="1, 2", schedule_type="H")]
    )
    for source in ("celery-beat", "django-q2"):
        ended = leasequeue("import", source, "--map", f"shop.pair={SAMPLE}.pair")
        assert ended.code == 0, ended.out
    assert dict(Schedule.objects.values_list("name", "payload")) == {
        "a": {"args": [1], "kwargs": {"second": 2}},
        "b": {"args": [1, 2], "kwargs": {}},
    }


@pytest.fixture(autouse=True)
def _forget():
    yield
    sample.seen.clear()
