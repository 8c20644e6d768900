"""utf8mb3 in the columns or on the connection: an attempt's end is recorded whatever its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connections

from django_leasequeue import Fixed, JobError, Reject, enqueue
from django_leasequeue.models import Job
from tests.core.arrange import history, job, run
from tests.field.workers import drain

pytestmark = pytest.mark.only_on("mariadb", "mysql")

TEXTS = (
    ("leasequeue_job", "last_error", 4000),
    ("leasequeue_job", "leased_by", 255),
    ("leasequeue_jobattempt", "error_class", 255),
    ("leasequeue_jobattempt", "error_text", 4000),
    ("leasequeue_jobattempt", "worker", 255),
)
TEXT = "before 😀 after"


@pytest.fixture(params=["columns", "connection", "both"])
def narrow(request, connection) -> Iterator[str]:
    """Let columns be of utf8mb3, as in a database that is, or every session, or both."""
    settings = connections["default"].settings_dict["OPTIONS"]
    charset = settings["charset"]
    if request.param != "connection":
        _alter(connection, "utf8mb3")
    if request.param != "columns":
        settings["charset"] = "utf8mb3"
        connection.close()
    yield request.param
    settings["charset"] = charset
    connection.close()
    _alter(connection, "utf8mb4")


def _alter(connection, charset: str) -> None:
    for table, column, length in TEXTS:
        kind = f"varchar({length}) CHARACTER SET {charset} NOT NULL DEFAULT ''"
        run(connection, f"ALTER TABLE {table} MODIFY {column} {kind}")


@pytest.mark.usefixtures("narrow")
def test_every_end_is_recorded(declare):
    """D11: what cannot be stored is replaced; the outcome is as ever."""

    @declare("narrow.fails", backoff=Fixed(0))
    def fails():
        raise JobError(TEXT)

    @declare("narrow.rejects")
    def rejects():
        raise Reject(TEXT)

    declare("narrow.returns")(lambda: {"text": TEXT})
    declare("narrow.after")(lambda: None)
    failed = enqueue("narrow.fails", max_attempts=2).id
    rejected = enqueue("narrow.rejects").id
    returned = enqueue("narrow.returns", max_attempts=1).id
    after = enqueue("narrow.after").id
    drain()
    assert job(failed).status == "dead"
    assert [one.outcome for one in history(failed)] == ["failed", "failed"]
    assert job(rejected).status == "dead"
    assert [one.outcome for one in history(rejected)] == ["rejected"]
    for one in (failed, rejected):
        assert re.fullmatch(".*before [?\N{REPLACEMENT CHARACTER}] after", job(one).last_error)
    assert job(returned).status == "done"
    result: Any = job(returned).result
    assert result["text"].startswith("before ")
    assert job(after).status == "done"


def test_a_payload(connection, narrow, db_kind):
    """D11: why the check warns. MySQL turns what the connection cannot carry into "?"."""
    if narrow == "columns":
        assert payload_of(enqueue("narrow.none", {"text": TEXT})) == TEXT
    elif db_kind == "mysql":
        assert payload_of(enqueue("narrow.none", {"text": TEXT})) == "before ? after"
    else:
        with pytest.raises(DatabaseError, match="Incorrect string value"):
            enqueue("narrow.none", {"text": TEXT})


def payload_of(made: Job) -> str:
    return str(job(made.id).payload["text"])
