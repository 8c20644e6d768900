"""Who is told of a new job, and when: at the commit, if the job is due then."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from django_leasequeue import enqueue, enqueue_many
from django_leasequeue.core.listening import Listening
from django_leasequeue.models import Job
from django_leasequeue.nudges import NudgeSocket
from django_leasequeue.runtime.connections import open_control
from tests.core.interleave import at_statement
from tests.statements import count_statements
from tests.waiting import wait_until

WAYS = [
    "nudge",
    pytest.param("notify", marks=pytest.mark.only_on("postgres")),
]


@contextmanager
def nudges(folder):
    with closing(NudgeSocket(folder)) as socket:
        yield socket.read


@contextmanager
def notifications(alias):
    session = open_control(alias, 60, listens=True)
    with closing(session):
        session.ensure_connection()
        source = Listening()
        source.fileno(session)
        yield lambda: source.read(session)


@pytest.fixture(params=WAYS)
def heard(request, connection, settings, tmp_path, alias):
    """What has been heard since the last call, the way the setting says."""
    settings.LEASEQUEUE = {
        **settings.LEASEQUEUE,
        "WAKEUP": request.param,
        "NUDGE_FOLDER": str(tmp_path / "n"),
    }
    way = nudges(tmp_path / "n") if request.param == "nudge" else notifications(alias)
    with way as read:
        yield lambda *queues: wait_until(lambda: read() == set(queues)) if queues else read()


def test_at_the_commit(heard):
    with transaction.atomic():
        enqueue("t", queue="mail")
        assert heard() == set()
    assert heard("mail")


def test_without_a_transaction(heard):
    enqueue("t", queue="mail")
    assert heard("mail")


def test_what_is_rolled_back_wakes_nobody(heard):
    with transaction.atomic():
        enqueue("t", queue="gone")
        transaction.set_rollback(True)
    with transaction.atomic():
        enqueue("t", queue="mail")
        with transaction.atomic():
            enqueue("t", queue="gone")
            transaction.set_rollback(True)
    assert heard("mail")


def test_only_what_is_due(heard):
    enqueue("t", queue="later", delay=60)
    enqueue("t", queue="later", run_after=timezone.now() + timedelta(hours=1))
    enqueue("t", queue="past", run_after=timezone.now() - timedelta(hours=1))
    assert heard("past")


def test_only_what_is_new_or_replaced(heard):
    for _ in range(2):
        enqueue("t", queue="mail", key="k")
        heard()
    enqueue("t", queue="mail", key="k", delay=60, on_conflict="replace")
    assert heard() == set()
    enqueue("t", queue="mail", key="k", on_conflict="replace")
    assert heard("mail")


def test_many_at_once(heard):
    enqueue_many([("t", {}, {"queue": queue}) for queue in ("a", "b", "a")])
    assert heard("a", "b")
    enqueue_many([("t", {}, {"queue": f"q{n}"}) for n in range(9)])
    assert heard("*")


@pytest.mark.parametrize(("how", "more"), [("poll", 0), ("nudge", 0), ("notify", 1)])
def test_statements(connection, db_kind, settings, how, more):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": how}
    with transaction.atomic():
        enqueue("t")
        with count_statements(connection) as statements:
            enqueue("t")
    assert len(statements) == 1 + (more if db_kind == "postgres" else 0)


def test_a_transaction_begun_by_hand(connection, settings):
    """Nobody tells when it commits: a worker finds the job by polling."""
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": "nudge"}
    connection.set_autocommit(False)
    try:
        assert enqueue("t").created
        connection.commit()
    finally:
        connection.set_autocommit(True)


@pytest.mark.only_on("postgres")
def test_a_notification_beside_the_answer_to_a_statement_is_heard(connection, alias, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": "notify"}
    source = Listening()
    with closing(open_control(alias, 60, listens=True)) as session:
        session.ensure_connection()
        source.fileno(session)
        enqueue("t", queue="mail")
        with session.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(0.05)")
        assert source.read(session) == {"mail"}


@pytest.mark.only_on("postgres")
def test_a_session_lost_after_the_insert_does_not_hide_the_job(connection, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": "notify"}
    with at_statement(connection, "leasequeue:notify", connection.connection.close):
        made = enqueue("t", queue="mail")
    assert Job.objects.get(pk=made.pk).queue_name == "mail"


@pytest.mark.only_on("postgres")
def test_a_lost_session_says_nothing_and_the_next_one_is_heard(connection, alias, settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "WAKEUP": "notify"}
    source = Listening()
    with closing(open_control(alias, 60, listens=True)) as session:
        session.ensure_connection()
        source.fileno(session)
        number = session.connection.info.backend_pid
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [number])
        wait_until(lambda: source.read(session) == set() and source.fileno(session) is None)
        session.close()
        session.ensure_connection()
        source.fileno(session)
        enqueue("t", queue="mail")
        wait_until(lambda: source.read(session) == {"mail"})
