"""I4: a column or a status of a newer version, while processes of this one go on."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import models
from django.db.models.fields import NOT_PROVIDED
from django.test import Client

from django_leasequeue import cancel, enqueue, enqueue_many, erase, prune, requeue, reschedule
from django_leasequeue.core.lanes import Lanes
from django_leasequeue.core.lease import renew
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, run, snapshot, write

MODELS = sorted(apps.get_app_config("leasequeue").get_models(), key=lambda model: model.__name__)
#: What a row is about. All else has a default in the database, and so must every later column.
REQUIRED: dict[str, dict[str, Any]] = {
    "BulkRun": {"operation": "requeue"},
    "DeadGroup": {"fingerprint": "f"},
    "Job": {"job_type": "t"},
    "JobAttempt": {"job_id": 1, "number": 1, "token": b"t" * 16, "outcome": "failed"},
    "JobEffect": {"job_id": 1, "name": "charge"},
    "Queue": {"name": "q"},
    "Schedule": {"name": "s", "job_type": "t"},
    "Worker": {"name": "w"},
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_other_column_has_a_default_in_the_database(connection, model):
    required = REQUIRED[model.__name__]
    for field in model._meta.concrete_fields:
        defaulted = field.null or field.primary_key or field.db_default is not NOT_PROVIDED
        assert defaulted == (field.column not in required), field.column
    marks = ", ".join(["%s"] * len(required))
    columns = ", ".join(required)
    run(
        connection,
        f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({marks})",
        list(required.values()),
    )
    row = model._default_manager.get()
    for field in model._meta.concrete_fields:
        assert field.null or getattr(row, field.attname) is not None, field.column


@pytest.mark.parametrize(
    "field",
    [
        models.IntegerField(db_default=7),
        models.CharField(max_length=16, db_default=""),
        models.JSONField(db_default=models.Value({}, models.JSONField())),
        models.JSONField(null=True),
    ],
    ids=["int", "text", "json", "null"],
)
def test_this_version_goes_on_beside_a_column_of_the_next(connection, field):
    field.set_attributes_from_name("of_the_next_version")
    field.model = Job
    with connection.schema_editor() as editor:
        editor.add_field(Job, field)
    try:
        enqueue("t", key="a")
        enqueue_many([("t", {}, {}), ("t", {}, {"key": "a"})])
        jobs = claim_jobs(connection, 5)
        settle(connection, [Ending(job.lease, Outcome(End.COMPLETED)) for job in jobs])
        assert list(Job.objects.values_list("status", flat=True)) == ["done"] * 2
    finally:
        with connection.schema_editor() as editor:
            editor.remove_field(Job, field)


def test_a_status_of_the_next_version_is_left_alone(connection, admin):
    held = enqueue("t").id
    ids = [enqueue("t", key=f"k{n}").id for n in range(3)]
    for job_id in ids:
        write(connection, job_id, status="archived", lease_token=b"t" * 16, last_error="e")
    before = snapshot(connection)
    (job,) = claim_jobs(connection, 5, lanes=Lanes(("*",)))
    assert job.job_id == held
    assert recover_batch(connection) == []
    assert enqueue("t", key="k0").created is False
    for operation in (cancel, requeue, erase, reschedule):
        assert operation(ids) == []
    assert prune(older_than=0, status=["done", "dead", "cancelled"]).jobs == 0
    assert len(renew(connection, [job.lease], 60).renewed) == 1
    settle(connection, [Ending(job.lease, Outcome(End.COMPLETED))])
    # The admin shows the word as it is.
    assert b"archived" in admin.get("/admin/leasequeue/job/").content
    assert admin.get(f"/admin/leasequeue/job/{ids[0]}/change/").status_code == 200
    after = snapshot(connection)["leasequeue_job"]
    assert [row for row in after if row[0] in ids] == [
        row for row in before["leasequeue_job"] if row[0] in ids
    ]


@pytest.fixture
def admin(queue_db):
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client
