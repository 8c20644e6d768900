"""job_enqueued: in the caller's transaction, for every enqueue, and of no harm to it."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connections, transaction

from django_leasequeue import enqueue, enqueue_many, job
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.signals import QueueSignal, job_enqueued
from tests.core.arrange import run
from tests.core.reports import make_report, reports
from tests.statements import count_statements

pytestmark = pytest.mark.usefixtures("connection")


@pytest.fixture
def listening():
    """Connects receivers, until the test ends."""
    connected = []

    def connect(receiver):
        job_enqueued.connect(receiver, weak=False)
        connected.append(receiver)

    yield connect
    for receiver in connected:
        job_enqueued.disconnect(receiver)


@pytest.fixture
def heard(listening):
    """What a receiver was told: (job id, created)."""
    told = []
    listening(lambda job, created, **kwargs: told.append((job.pk, created)))
    return told


def test_each_enqueue(heard):
    first = enqueue("t", key="k")
    again = enqueue("t", key="k")
    many = enqueue_many([("t", {}, {}), ("t", {}, {"key": "k"})])
    assert heard == [
        (first.pk, True),
        (again.pk, False),
        (many[0].pk, True),
        (first.pk, False),
    ]


def test_of_a_job_type(heard):
    @job("signal.type")
    def handler(n):
        pass

    try:
        made = handler.enqueue(2)
    finally:
        registry.remove("signal.type")
    assert heard == [(made.pk, True)]


def test_it_is_inside_the_callers_transaction(listening):
    listening(lambda job, **kwargs: make_report(str(job.pk)))
    with transaction.atomic():
        enqueue("t")
        transaction.set_rollback(True)
    assert (reports(), Job.objects.count()) == ([], 0)
    with transaction.atomic():
        made = enqueue("t")
    assert reports() == [str(made.pk)]


def broken_sql(**kwargs):
    make_report("lost")
    run(connections["default"], "SELECT no_such_column FROM leasequeue_job")


def broken_code(**kwargs):
    make_report("lost")
    raise ValueError("secret")


@transaction.atomic
def enqueue_between_reports():
    before = make_report("before")
    made = enqueue("t")
    make_report("after")
    return made, before


@pytest.mark.parametrize("receiver", [broken_sql, broken_code])
@pytest.mark.parametrize("atomic", [True, False])
def test_a_receiver_that_raises_changes_nothing(listening, heard, caplog, receiver, atomic):
    """Case C14: also when it has broken the transaction, which a savepoint mends."""
    listening(receiver)
    if atomic:
        made, before = enqueue_between_reports()
        assert reports() == ["after", before.idempotency_key]
    else:
        made = enqueue("t")
    assert Job.objects.get().pk == made.pk
    assert heard == [(made.pk, True)]
    (record,) = [record for record in caplog.records if record.event == "signal_failed"]
    assert record.fields["signal"] == "job_enqueued"
    assert record.fields["receiver"] == receiver.__name__
    assert "secret" not in f"{record.fields} {record.getMessage()} {record.exc_info}"


def swallowed_sql(**kwargs):
    with suppress(DatabaseError):
        broken_sql()


def swallowed_duplicate(**kwargs):
    make_report("lost")
    with suppress(IntegrityError):
        make_report("lost")


def handled_duplicate(**kwargs):
    make_report("kept")
    with suppress(IntegrityError), transaction.atomic():
        make_report("kept")


@pytest.mark.parametrize("receiver", [swallowed_sql, swallowed_duplicate, handled_duplicate])
def test_a_receiver_that_swallows_an_error_breaks_nothing(listening, receiver):
    """Django may know of it, or only the server may."""
    listening(receiver)
    made, before = enqueue_between_reports()
    assert Job.objects.get().pk == made.pk
    assert {"after", before.idempotency_key} <= set(reports())
    assert "kept" in reports() or receiver is not handled_duplicate


@pytest.mark.parametrize("swallowed", [True, False])
@pytest.mark.only_on("mariadb", "mysql")
def test_a_receiver_that_has_ended_the_transaction_is_told_of(listening, connection, swallowed):
    """As a deadlock does there: there is no savepoint to go back to, and no job any more."""

    def deadlocked(**kwargs):
        run(connection, "ROLLBACK")
        with suppress(DatabaseError) if swallowed else nullcontext():
            raise OperationalError(1213, "Deadlock found when trying to get lock")

    listening(deadlocked)
    with pytest.raises(OperationalError):
        enqueue_between_reports()
    assert (reports(), Job.objects.count()) == ([], 0)


def test_without_receivers_it_costs_no_statement(connection):
    with transaction.atomic(), count_statements(connection) as statements:
        enqueue("t", key="k")
    assert len(statements) <= 2
    assert not any("SAVEPOINT" in sql for sql in statements)


def test_an_exit_in_a_receiver_ends_nothing():
    signal = QueueSignal("any")
    signal.connect(leave, weak=False)
    (error,) = signal.tell(None)
    assert isinstance(error, SystemExit)


def leave(**kwargs):
    raise SystemExit


def test_what_is_raised_is_returned():
    signal = QueueSignal("any")
    signal.connect(fail, weak=False)
    assert [type(error) for error in signal.tell(None)] == [DatabaseError]
    assert QueueSignal("silent").tell(None) == []


def fail(**kwargs):
    raise DatabaseError
