"""Payloads larger than a server's packet, where the project allows them: an error, no more."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from django_leasequeue import EnqueueError, enqueue
from django_leasequeue.models import Job
from tests.core.reports import make_report, reports
from tests.statements import count_statements

SIZES = {"17 MB": 17 * 2**20, "70 MB": 70 * 2**20}


@pytest.fixture(params=SIZES.values(), ids=SIZES)
def payload(request):
    """A payload that some server refuses, or drops the connection for."""
    return {"v": "x" * request.param}


def test_the_limit_is_checked_before_any_statement(connection, payload):
    """D7: as the settings are, no server ever sees it; outside and inside of a transaction."""
    with count_statements(connection) as statements, pytest.raises(EnqueueError, match="limit"):
        enqueue("large", payload)
    assert statements == []
    with transaction.atomic():
        make_report("before")
        with pytest.raises(EnqueueError, match="limit"):
            enqueue("large", payload)
        make_report("after")
    assert (reports(), Job.objects.count()) == (["after", "before"], 0)


@pytest.mark.only_on("mariadb", "mysql")
def test_a_limit_above_the_servers_packet_costs_one_job(connection, payload, settings):
    """D7: 1153 or 2006 reaches the caller, and the next statement works again."""
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "MAX_PAYLOAD_BYTES": 100 * 2**20}
    with connection.cursor() as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        (packet,) = cursor.fetchone()
    if len(payload["v"]) < packet:
        assert enqueue("large", payload).created
    else:
        with pytest.raises(DatabaseError):
            enqueue("large", payload)
    make_report("after")
    assert enqueue("small").created
    assert reports() == ["after"]
