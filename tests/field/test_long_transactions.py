"""C17, C19: a transaction around a handler that takes its time, or that wants one of its own."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from django.db import connections, transaction

from tests.core.arrange import claim_one, job, outcomes, running, write
from tests.core.reports import make_report, reports
from tests.field.server_sessions import limit, number, pause
from tests.field.slot import opened

_ERRORS = ("OperationalError", "InterfaceError", "InternalError")
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


@pytest.fixture
def slot(connection):
    with opened() as slot:
        yield slot


@SERVERS
@pytest.mark.parametrize("atomic", [True, False])
def test_the_server_ends_a_transaction_that_stands_still(
    slot, connection, declare, second_connection, atomic
):
    """C17: that attempt has failed, whole; the next one does everything again."""
    slow = [True]

    @declare("arranged", takes_context=True, atomic=atomic)
    def handler(context, n):
        limit(connections["default"])
        with nullcontext() if atomic else context.complete():
            make_report("in it")
            if slow:
                pause(second_connection)

    (claimed,) = running(connection)
    assert slot.finish(claimed).end == "failed"
    row = job(claimed.job_id)
    assert (row.status, row.attempts) == ("ready", 1)
    assert row.last_error in _ERRORS
    assert reports() == []
    slow.clear()
    write(connection, claimed.job_id, available_at=row.created_at)
    assert slot.finish(claim_one(connection)).settled
    assert outcomes(claimed.job_id) == ["failed", "completed"]
    assert reports() == ["in it"]


@SERVERS
def test_slow_work_before_the_block(slot, connection, declare, second_connection):
    """C17: the form that the docs offer works, though the server has ended the idle session."""
    sessions = []

    @declare("arranged", takes_context=True)
    def handler(context, n):
        limit(connections["default"])
        sessions.append(number(connections["default"]))
        pause(second_connection)
        with context.complete():
            make_report("after it")
            sessions.append(number(connections["default"]))

    (claimed,) = running(connection)
    assert slot.finish(claimed).settled
    assert outcomes(claimed.job_id) == ["completed"]
    assert reports() == ["after it"]
    assert sessions[0] != sessions[1]


def test_a_durable_block_of_the_handlers_own(slot, connection):
    """C19: a plain handler is in no transaction, which is the option that such a block needs."""

    @transaction.atomic(durable=True)
    def durable():
        make_report("durable")

    refused = slot.attempt(durable, atomic=True, timeout=1)
    assert (refused.end, refused.error.error_class) == ("failed", "RuntimeError")
    assert reports() == []
    assert slot.attempt(durable).end == "completed"
    assert reports() == ["durable"]


def test_completing_inside_a_transaction_of_the_handlers_own(slot, connection):
    """C19, the other way round: it would not be complete at the end of the block."""

    def handler(context):
        with transaction.atomic(), context.complete():
            make_report("nested")

    refused = slot.attempt(handler, takes_context=True)
    assert (refused.end, refused.error.error_class) == ("failed", "RuntimeError")
    assert reports() == []
