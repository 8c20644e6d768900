"""Forging, swapping and replaying signed jobs, against what docs/signing.md promises."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import re

import pytest
from django.db import DatabaseError

from django_leasequeue import enqueue, sign
from django_leasequeue.models import Job
from django_leasequeue.registry import registry
from django_leasequeue.signing import Sealed, canonical
from tests.core.arrange import job, run, write
from tests.field.workers import drain
from tests.house_rules import ROOT

pytestmark = pytest.mark.usefixtures("connection")
KEY = "k" * 32
PAGE = (ROOT / "docs" / "signing.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _signing(settings):
    settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": [KEY]}


@pytest.fixture
def ran(declare):
    """What ran, as (job type, n)."""
    calls: list[tuple[str, int]] = []
    for name in ("pay", "refund"):
        declare(name)(lambda n, name=name: calls.append((name, n)))
    return calls


def end_of(job_id):
    row = job(job_id)
    return (row.status, row.last_error)


REJECTED = ("dead", "RejectedJob: Invalid signature")


def forgeries(made):
    """Return signatures that somebody without the key could make of what is in the table."""
    right = made.signature
    text = canonical(list(Sealed(made.job_type, made.queue_name, made.max_attempts,
                                 made.idempotency_key, 1, {"n": 2}, {})))  # fmt: skip
    return {
        "another's": "0" * 64,
        "in capitals": right.upper(),
        "cut": right[:-1],
        "half": right[:32],
        "longer": right + "0",
        "with a space": right + " ",
        "with a newline": right[:-1] + "\n",
        "no key": hmac.new(b"", text.encode(), hashlib.sha256).hexdigest(),
        "a plain digest": hashlib.sha256(text.encode()).hexdigest(),
        "the key for a salt": hmac.new(KEY.encode(), b"", hashlib.sha256).hexdigest(),
        "wide digits": "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in right),
        "none": "none",
    }


@pytest.mark.parametrize("number", range(12))
def test_a_forged_signature(connection, ran, number):
    made = enqueue("pay", {"n": 1})
    forged = [*forgeries(job(made.id)).values()][number]
    try:
        write(connection, made.id, signature=forged)
    except DatabaseError:  # the column itself takes no more than 64 characters of ASCII
        return
    drain()
    assert end_of(made.id) == REJECTED
    assert ran == []


PARTS = ("job_type", "queue_name", "payload", "signature")


@pytest.mark.parametrize(
    "parts", [part for size in range(1, 5) for part in itertools.combinations(PARTS, size)]
)
def test_a_swap_between_two_jobs(connection, ran, parts):
    """Of types, queues, payloads and signatures: whatever is taken over, it does not fit."""
    one, other = enqueue("pay", {"n": 1}, queue="a"), enqueue("refund", {"n": 2}, queue="b")
    columns = ", ".join(f"{part} = %s" for part in parts)
    sql = f"UPDATE leasequeue_job SET {columns} WHERE id = %s"
    values = {}
    with connection.cursor() as cursor:
        for made in (one, other):
            cursor.execute(
                f"SELECT {', '.join(parts)} FROM leasequeue_job WHERE id = %s", [made.id]
            )
            values[made.id] = cursor.fetchone()
    run(connection, sql, [*values[other.id], one.id])
    run(connection, sql, [*values[one.id], other.id])
    drain()
    assert [end_of(one.id), end_of(other.id)] == [REJECTED, REJECTED]
    assert ran == []


def copied(connection, original, **changes):
    """Insert a copy of a job with other columns, as somebody with INSERT would."""
    columns = ["queue_name", "job_type", "payload", "idempotency_key", "max_attempts", "signature"]
    picked = ", ".join("%s" if name in changes else name for name in columns)
    run(
        connection,
        f"INSERT INTO leasequeue_job ({', '.join(columns)}) "
        f"SELECT {picked} FROM leasequeue_job WHERE id = %s",
        [*(changes[name] for name in columns if name in changes), original],
    )
    return Job.objects.order_by("-pk").values_list("pk", flat=True)[0]


@pytest.mark.parametrize("changes", [{"queue_name": "other"}, {"idempotency_key": "ab" * 32}])
def test_a_replay_beside_the_original(connection, ran, changes):
    made = enqueue("pay", {"n": 1})
    drain()
    copy = copied(connection, made.id, **changes)
    drain()
    assert end_of(copy) == REJECTED
    assert ran == [("pay", 1)]


def test_a_replay_in_place_is_what_the_page_says_it_is(connection, ran):
    """ "With DELETE …": its signature fits again, and the key tells that it is the same job."""
    made = enqueue("pay", {"n": 1})
    signature = job(made.id).signature
    drain()
    assert "they can put a job that has run back as it was" in " ".join(PAGE.split())
    write(connection, made.id, status="ready", finished_at=None)
    drain()
    assert ran == [("pay", 1)] * 2
    assert sign(job(made.id)) == signature


@pytest.mark.parametrize("signed", [True, False])
def test_no_module_is_imported_for_a_forged_row(connection, monkeypatch, signed):
    """A type that is not known may be the path of a task: who names it must have the key."""
    asked: list[str] = []
    monkeypatch.setattr(registry, "_resolvers", [asked.append])
    made = enqueue("reports.somewhere.task")
    if not signed:
        write(connection, made.id, signature="0" * 64)
    drain()
    assert end_of(made.id)[0] == "dead"
    assert asked == (["reports.somewhere.task"] if signed else [])


COVERED = {
    *("job_type", "queue_name", "max_attempts", "idempotency_key", "payload_version"),
    *("payload", "context"),
}
#: Neither decides what runs: set by the database, and only shown.
SHOWN = {"id", "created_at", "updated_at"}


def test_the_page_names_every_column():
    """A new column is either covered, or the page says what changing it could do."""
    columns = {field.column for field in Job._meta.concrete_fields}
    table = PAGE.partition("## What is not covered")[2].partition("\n## ")[0]
    told = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| (`.*?) \|", table))))
    assert columns - COVERED - SHOWN == told & columns
    assert len(COVERED) == len(Sealed._fields)
    words = PAGE.partition("## What is covered")[2].partition("\n## ")[0].replace("`", "")
    for column in COVERED:
        assert re.sub("^job_type$|_name$", "", column) in words, column
