"""`leasequeue import django-tasks-db`: waiting tasks become jobs once, in their order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from django_leasequeue.models import Job
from tests.core.arrange import claim_jobs

AT_ONCE = datetime(9999, 1, 1, tzinfo=UTC)
LATER = datetime(2042, 1, 1, tzinfo=UTC)


@pytest.fixture
def note(declare):
    return declare("note.made")(lambda text, n=0: None)


def make(models, **values):
    call = {"args": ["secret"], "kwargs": {"n": 1}}
    values = {"args_kwargs": call, "task_path": "shop.note", "run_after": AT_ONCE, **values}
    return models["DBTaskResult"].objects.create(
        backend_name="default", exception_class_path="", traceback="", **values
    )


def run(leasequeue, *arguments):
    return leasequeue("import", "django-tasks-db", "--map", "shop.note=note.made", *arguments)


def test_each_waiting_task_is_one_job(tasks_db, note, leasequeue):
    task = make(tasks_db, queue_name="mail", priority=-7)
    late = make(tasks_db, run_after=LATER)
    for status in ("RUNNING", "FAILED", "SUCCESSFUL"):
        make(tasks_db, status=status)
    dry = run(leasequeue, "--dry-run")
    assert (dry.code, Job.objects.count()) == (0, 0)
    for expected in ("imported", "present"):
        ended = run(leasequeue, "--json")
        assert ended.code == 0
        assert [row["state"] for row in ended.document["rows"]] == [expected] * 2
        assert "secret" not in ended.out + ended.err
        assert Job.objects.count() == 2
    job = Job.objects.get(queue_name="mail")
    assert (job.job_type, job.priority) == ("note.made", -7)
    assert job.payload == {"text": "secret", "n": 1}
    assert Job.objects.get(queue_name="default").available_at == LATER
    task.refresh_from_db()
    late.refresh_from_db()
    assert (task.status, late.status) == ("READY", "READY")


def test_first_in_first_out(tasks_db, note, connection, leasequeue):
    tasks = [make(tasks_db, args_kwargs={"args": [n], "kwargs": {}}) for n in range(5)]
    for number, task in enumerate(tasks):  # ids over there are random
        moment = timezone.now() - timedelta(seconds=60 - number)
        tasks_db["DBTaskResult"].objects.filter(pk=task.pk).update(enqueued_at=moment)
    assert run(leasequeue).code == 0
    claimed = [job.job_id for job in claim_jobs(connection, 5)]
    numbers = dict(Job.objects.values_list("pk", "payload__text"))
    assert [numbers[job_id] for job_id in claimed] == [0, 1, 2, 3, 4]
    Job.objects.all().delete()


def test_mark_closes_the_row_together_with_the_job(tasks_db, note, leasequeue):
    task = make(tasks_db)
    assert run(leasequeue, "--mark").code == 0
    task.refresh_from_db()
    assert task.status == "FAILED"
    assert task.traceback == f"Imported into django-leasequeue as job {Job.objects.get().pk}"
    assert run(leasequeue, "--mark").lines[-3:] == ["imported: 0", "present: 0", "left: 0"]


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_mark_leaves_what_a_worker_over_there_has(
    tasks_db, note, second_connection, queue_db, leasequeue
):
    task = make(tasks_db)
    rival = second_connection()
    rival.set_autocommit(False)
    table = queue_db.ops.quote_name(tasks_db["DBTaskResult"]._meta.db_table)
    with rival.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {table} FOR UPDATE")
        ended = run(leasequeue, "--mark")
    rival.rollback()
    rival.close()
    assert ended.code == 1
    assert "a worker over there has it" in ended.lines[0]
    assert not Job.objects.exists()
    task.refresh_from_db()
    assert task.status == "READY"


def test_what_does_not_fit_is_left(tasks_db, note, leasequeue):
    make(tasks_db, args_kwargs={"args": ["secret", 1, 2], "kwargs": {}})
    make(tasks_db, task_path="shop.other")
    ended = run(leasequeue)
    assert (ended.code, Job.objects.count()) == (1, 0)
    assert "secret" not in ended.out
    assert "left: 2" in ended.lines
    assert "--map shop.other=JOB_TYPE" in ended.out
