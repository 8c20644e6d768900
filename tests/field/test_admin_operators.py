"""E1, E2, I2 from the admin: requeue, cancel and delete dead, running and very many jobs."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from django_leasequeue import enqueue
from django_leasequeue.core import bulk_plan
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import BulkRun, Job, JobAttempt
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, job, outcomes, running
from tests.core.bulk import bury, statuses
from tests.statements import count_statements
from tests.test_admin import act, answer, ask, logged_in, said, told, user_with

ROOT = "/admin/leasequeue/"
DEAD = f"{ROOT}deadgroup/"


@pytest.fixture
def operator(connection):
    return logged_in(User.objects.create_superuser("root", password="x"))


def fail(connection, times):
    """Claim and fail what is due, so many times; the jobs are due again at once."""
    for _ in range(times):
        jobs = claim_jobs(connection, 10)
        settle(connection, [Ending(one.lease, Outcome(End.FAILED, delay=0)) for one in jobs])


def press(client, job_id, how):
    """Requeue one job, in one of the ways that there are."""
    page = f"{ROOT}job/{job_id}/"
    if how == "page":
        now = job(job_id)
        data = {"reason": "x", "claims": now.claims, "status": now.status}
        client.post(f"{page}act/requeue/", data)
    elif how == "list":
        act(client, "requeue_jobs", [job_id])
    elif how == "selection":
        data = {"job": job_id, "shown_at": "2999-01-01T00:00:00Z", "reason": "x"}
        client.post(f"{DEAD}requeue/selected/", data)


@pytest.mark.parametrize("how", ["page", "list", "selection"])
def test_e1_a_job_at_its_maximum_gets_a_fresh_allowance(connection, operator, how):
    job_id = enqueue("arranged", max_attempts=3).id
    fail(connection, 3)
    assert (job(job_id).status, job(job_id).attempts) == ("dead", 3)
    press(operator, job_id, how)
    assert (job(job_id).status, job(job_id).attempts, job(job_id).claims) == ("ready", 0, 3)
    fail(connection, 3)
    assert (job(job_id).status, job(job_id).attempts) == ("dead", 3)
    numbers = JobAttempt.objects.filter(job_id=job_id).order_by("number")
    assert list(numbers.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert outcomes(job_id) == ["failed"] * 6


@pytest.mark.leaves_reserved
@pytest.mark.parametrize("how", ["page", "list", "selection"])
def test_e2_a_running_job_is_not_requeued(connection, operator, how):
    (held,) = running(connection)
    press(operator, held.job_id, how)
    now = job(held.job_id)
    assert (now.status, bytes(now.lease_token)) == ("reserved", held.lease.token)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("how", ["act/cancel/", "list", "all pages"])
def test_a_running_job_that_is_cancelled_is_lost_to_its_worker(connection, operator, how):
    (held,) = running(connection)
    if how == "list":
        assert act(operator, "cancel_jobs", [held.job_id]) == "finished 1"
    elif how == "all pages":
        assert act(operator, "cancel_jobs", query="status=reserved") == "finished 1"
    else:
        data = {"reason": "x", "claims": "1", "status": "reserved"}
        operator.post(f"{ROOT}job/{held.job_id}/{how}", data)
    settle(connection, [Ending(held.lease, Outcome(End.COMPLETED))])
    assert job(held.job_id).status == "cancelled"
    assert outcomes(held.job_id) == ["cancelled"]


@pytest.mark.leaves_reserved
def test_a_running_job_is_not_deleted(connection, operator):
    (held,) = running(connection)
    page = f"{ROOT}job/"
    assert operator.post(f"{page}{held.job_id}/delete/", {"post": "yes"}).status_code == 403
    told = act(operator, "delete_selected", [held.job_id])
    assert told == "No action selected."
    assert job(held.job_id).status == "reserved"


def test_a_job_that_was_pruned_between_page_and_post(connection, operator):
    (gone,) = bury(1)
    Job.objects.filter(pk=gone).delete()
    for page in ("act/requeue/", "act/cancel/", "payload/"):
        answer = operator.post(f"{ROOT}job/{gone}/{page}", {"reason": "x"})
        assert answer.status_code == 404, page
    data = {"job": gone, "shown_at": "2999-01-01T00:00:00Z", "reason": "x"}
    assert operator.post(f"{DEAD}requeue/selected/", data).status_code == 302
    asked = ask(operator, "requeue_jobs", [gone])
    assert "Left out: 1 gone." in said(asked)
    assert not LogEntry.objects.exists() and not BulkRun.objects.exists()


def test_i2_all_pages_in_chunks_with_true_counts(connection, operator, monkeypatch):
    monkeypatch.setattr(bulk_plan, "CHUNK", 3)
    ids, others = bury(10), bury(2, status="done")
    asked = ask(operator, "requeue_jobs", query="status=dead")
    with count_statements(connection) as statements:
        assert told(answer(operator, asked)) == "finished 10"
    changes = [sql for sql in statements if "UPDATE leasequeue_job " in sql]
    assert len(changes) == 4
    assert max(sql.count("%s") for sql in changes) < 10
    assert statuses([*ids, *others]) == ["ready"] * 10 + ["done"] * 2
    for _again in range(2):
        assert "confirmed the same" in told(answer(operator, asked))
        assert "0 jobs" in said(ask(operator, "requeue_jobs", query="status=dead"))
    assert LogEntry.objects.count() == BulkRun.objects.count() == 1
    assert BulkRun.objects.get().changed == 10


def test_i2_takes_a_post_and_the_permission(connection):
    ids = bury(3)
    data = {"action": "requeue_jobs", "select_across": "1", "index": "0", "_selected_action": "0"}
    client = logged_in(user_with("view_job"))
    client.post(f"{ROOT}job/", data)
    root = logged_in(User.objects.create_superuser("root", password="x"))
    root.get(f"{ROOT}job/", data)
    Client().post(f"{ROOT}job/", data)
    assert statuses(ids) == ["dead"] * 3
