"""Enqueue: the job is there when the caller's transaction commits, or it never was."""

from __future__ import annotations

from contextlib import suppress

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from django_leasequeue import EnqueueError, Fixed, enqueue
from django_leasequeue.core.enqueue import aenqueue, aenqueue_many
from django_leasequeue.models import Job
from tests.core.arrange import job
from tests.core.reports import make_report, reports
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")


class Undo(Exception):
    pass


def test_it_is_a_ready_job_at_once():
    made = enqueue("mail.send", {"to": 7})
    row = job(made.id)
    assert made.created
    assert (row.job_type, row.payload, row.queue_name) == ("mail.send", {"to": 7}, "default")
    assert (row.status, row.attempts, row.claims, row.crashes) == ("ready", 0, 0, 0)
    assert (row.max_attempts, row.max_crashes, row.priority) == (5, 3, 0)
    assert row.lease_token is row.lease_until is row.live_key is row.finished_at is None
    assert list(Job.objects.due()) == [row]
    assert abs((row.created_at - row.available_at).total_seconds()) < 1


def test_it_commits_with_the_callers_transaction(session, as_default):
    with transaction.atomic():
        made = enqueue("mail.send")
        with as_default(session()):
            assert not Job.objects.exists()
    with as_default(session()):
        assert Job.objects.get() == made


def test_it_goes_with_the_callers_transaction():
    with suppress(Undo), transaction.atomic():
        enqueue("mail.send")
        raise Undo
    assert not Job.objects.exists()


def test_it_goes_with_the_callers_savepoint():
    with transaction.atomic():
        kept = enqueue("mail.send")
        with suppress(Undo), transaction.atomic():
            enqueue("mail.send")
            raise Undo
    assert list(Job.objects.all()) == [kept]


def test_it_works_without_autocommit(connection):
    connection.set_autocommit(False)
    try:
        enqueue("mail.send")
        connection.rollback()
        assert not Job.objects.exists()
        enqueue("mail.send", key="k")
        assert not enqueue("mail.send", key="k").created
        connection.commit()
    finally:
        connection.set_autocommit(True)
    assert Job.objects.count() == 1


def test_columns_that_were_not_read_load_when_asked_for():
    made = enqueue("mail.send", {"to": 7}, key="k")
    again = enqueue("mail.send", {"to": 8}, key="k")
    assert made.payload == again.payload == {"to": 7}
    assert again.status == "ready"
    assert made == again


def test_what_a_declaration_says_and_what_the_caller_says(declare):
    @declare("mail.send", queue="mails", priority=7, max_attempts=2, max_crashes=1, backoff=Fixed())
    def send(to):
        pass

    plain = job(send.enqueue(1).id)
    assert (plain.queue_name, plain.priority) == ("mails", 7)
    assert (plain.max_attempts, plain.max_crashes) == (2, 1)
    wished = send.using(queue="q", priority=-7, max_attempts=9).enqueue(to=2)
    assert (wished.queue_name, wished.priority, wished.max_attempts) == ("q", -7, 9)
    assert enqueue("mail.send", {"to": 3}).queue_name == "mails"
    assert job(wished.id).payload == {"to": 2}


def test_arguments_that_do_not_fit_are_told_at_once(declare):
    @declare("mail.send")
    def send(to):
        pass

    with pytest.raises(TypeError, match=r"mail\.send"):
        send.enqueue(1, 2)
    with pytest.raises(EnqueueError, match="Malformed job payload"):
        enqueue("mail.send", {"from": 1})
    assert not Job.objects.exists()


def test_a_job_type_of_another_program_is_taken_on_trust():
    assert enqueue("php.mail", {"any": "thing"}).created


def test_from_a_coroutine():
    async def both() -> list[Job]:
        return [await aenqueue("mail.send"), *await aenqueue_many([("mail.send", None, {})])]

    made = async_to_sync(both)()
    assert list(Job.objects.order_by("id")) == made


def test_business_rows_and_jobs_are_one_transaction():
    with suppress(Undo), transaction.atomic():
        make_report()
        enqueue("mail.send", key="k")
        raise Undo
    assert not Job.objects.exists()
    assert reports() == []


@pytest.mark.parametrize("options", [{}, {"key": "k"}, {"key": "k", "key_until": "finished"}])
def test_statements_in_the_callers_transaction(connection, options):
    with transaction.atomic():
        with count_statements(connection) as first:
            enqueue("mail.send", **options)
        with count_statements(connection) as second:
            enqueue("mail.send", **options)
    assert len(first) <= 2
    assert len(second) <= 2
    assert options or len(first + second) == 2
