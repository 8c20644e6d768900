"""The first statement of a handler's transaction, which on PostgreSQL begins it as well."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from django_leasequeue import enqueue
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.lease import lock_within
from django_leasequeue.exceptions import LeaseLost
from django_leasequeue.models import Job
from tests.core.arrange import job, running, snapshot, write
from tests.faults import Rival, wait_blocked
from tests.faults import session_id as asked
from tests.statements import count_statements

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]


def test_the_block_is_one_transaction(connection):
    (held,) = running(connection)
    for undone in (True, False):
        with transaction.atomic(durable=True):
            lock_within(connection, held.lease)
            write(connection, held.job_id, priority=7)
            transaction.set_rollback(undone)
        assert job(held.job_id).priority == (0 if undone else 7)
    assert connection.get_autocommit()


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_the_row_is_locked_until_its_end(connection, session, db_kind):
    (held,) = running(connection)
    other = session()
    with transaction.atomic(durable=True):
        lock_within(connection, held.lease)
        number = asked(other, db_kind)
        rival = Rival(lambda: write(other, held.job_id, priority=7))
        wait_blocked(session(), db_kind, number)
    rival.result()


def test_a_lost_lease_leaves_a_session_that_works(connection):
    (held,) = running(connection)
    write(connection, held.job_id, lease_token=b"another".ljust(16))
    before = snapshot(connection)
    with pytest.raises(LeaseLost), transaction.atomic(durable=True):
        lock_within(connection, held.lease)
    assert snapshot(connection) == before
    assert enqueue("t").id


def test_an_error_leaves_a_session_that_works(connection):
    with pytest.raises(DatabaseError), transaction.atomic(durable=True):
        dialect_for(connection).read_first(connection, "SELECT nothing FROM nowhere", [])
    with transaction.atomic(durable=True):
        found = dialect_for(connection).read_first(connection, "SELECT %s", [41])
    assert [row[0] for row in found] == [41]


def test_code_in_the_block_sees_what_atomic_gives_it(connection):
    """Rows may be locked and walked, savepoints set; a failed one undoes its own rows alone."""
    (held,) = running(connection)
    with transaction.atomic(durable=True):
        lock_within(connection, held.lease)
        assert [row.pk for row in Job.objects.select_for_update().iterator()] == [held.job_id]
        with suppress(IntegrityError), transaction.atomic():
            Job.objects.filter(pk=held.job_id).update(priority=5)
            Job.objects.create(id=held.job_id, job_type="t")
        Job.objects.filter(pk=held.job_id).update(queue_name="moved")
    assert (job(held.job_id).priority, job(held.job_id).queue_name) == (0, "moved")


@pytest.mark.only_on("postgres")
@pytest.mark.parametrize("prepared", [False, True], ids=["bound here", "bound by the server"])
def test_it_takes_the_transactions_beginning_along(session, connection, prepared):
    """A server that binds parameters takes one statement at a time."""
    (held,) = running(connection)
    worker = session()
    worker.close()
    worker.settings_dict["OPTIONS"] = {
        **worker.settings_dict["OPTIONS"],
        "server_side_binding": prepared,
    }
    worker.set_autocommit(False)
    with count_statements(worker) as statements:
        lock_within(worker, held.lease)
    assert [sql.startswith("BEGIN; /* leasequeue:hold */") for sql in statements] == [not prepared]
    assert worker.connection.autocommit is False
    worker.rollback()
    worker.set_autocommit(True)
