"""Rows that plain SQL put in, as somebody would who has INSERT and nothing else."""

from __future__ import annotations

import json
import secrets

import pytest
from django.db import DatabaseError

from django_leasequeue import enqueue
from django_leasequeue.logs import JsonLines
from django_leasequeue.models import Job
from tests.core.arrange import job, outcomes, run
from tests.field.workers import drain
from tests.test_admin import logged_in, text, user_with

pytestmark = pytest.mark.usefixtures("connection")
MARK = "Zq7-marker"


def inserted(connection, payload):
    """Insert a job with this payload's text; return its id, None where the server refuses it."""
    sql = "INSERT INTO leasequeue_job (job_type, payload, idempotency_key) VALUES (%s, %s, %s)"
    try:
        run(connection, sql, ["foreign", payload, secrets.token_hex(32)])
    except DatabaseError:
        return None
    return Job.objects.order_by("-pk").values_list("pk", flat=True)[0]


@pytest.fixture
def got(declare):
    """What the handler was called with."""
    calls: list[object] = []
    declare("foreign")(lambda **payload: calls.append(payload))
    return calls


def nested(levels):
    return '{"a":' + "[" * (levels - 1) + f'"{MARK}"' + "]" * (levels - 1) + "}"


PAYLOADS = {
    "10 000 levels": nested(10_000),
    "900 levels": nested(900),
    "100 levels": nested(100),
    "a number with 5000 digits": '{"n":' + "9" * 5_000 + "}",
    "an exponent": '{"n":1e400}',
    "no JSON number": '{"n":NaN}',
    "a list": f'["{MARK}"]',
    "no JSON": MARK,
    "an escaped surrogate": f'{{"{MARK}":"\\ud800"}}',
    "an escaped NUL": f'{{"{MARK}":"\\u0000"}}',
    "names of Python": f'{{"__class__":"{MARK}","self":1,"context":2,"args":[],"kwargs":{{}}}}',
    "10 MB": json.dumps({"text": MARK * 1_000_000}),
}


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_payload_ends_its_own_job_only(connection, got, leasequeue, caplog, payload):
    """The server refuses it, or the job ends for good; the next one runs, and all can be shown."""
    caplog.set_level("DEBUG", logger="django_leasequeue")
    made = inserted(connection, payload)
    after = enqueue("foreign", {"after": True})
    drain()
    assert job(after.id).status == "done"
    assert {"after": True} in got
    if made is None:
        return
    status = Job.objects.values_list("status", flat=True).get(pk=made)
    assert status in ("done", "dead")
    assert outcomes(made) == [{"done": "completed", "dead": "rejected"}[status]]
    assert (status == "done") == (len(got) == 2)
    lines = [JsonLines().format(record) for record in caplog.records if hasattr(record, "event")]
    assert lines and not [line for line in lines if MARK in line]
    assert len(max(lines, key=len)) < 20_000
    shown_everywhere(leasequeue, made)


def shown_everywhere(leasequeue, made):
    client = logged_in(user_with("view_job", "view_payload"))
    for page in ("", f"{made}/change/", f"{made}/change/?reveal=1"):
        answer = client.get(f"/admin/leasequeue/job/{page}")
        assert answer.status_code == 200
        assert len(text(answer)) < 1_000_000
    for options in ((), (made, "--payload"), (made, "--payload", "--json")):
        ended = leasequeue("jobs", *options)
        assert ended.code == 0
        assert all(line.isprintable() for line in ended.out.splitlines())


@pytest.mark.parametrize("signed", [False, True])
def test_a_key_that_is_there_twice(connection, declare, settings, signed):
    """What is checked is what runs: no server, and no reader here, sees the other one."""
    if signed:
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": ["k" * 32]}
    got = []

    @declare("twice")
    def twice_there(n):
        got.append(n)

    made = enqueue("twice", {"n": 1})
    for twice in ('{"n": 666, "n": 1}', '{"n": 1, "n": 666}'):
        run(connection, "UPDATE leasequeue_job SET payload = %s, status = 'ready'", [twice])
        drain()
        row = job(made.id)
        last = row.payload["n"]
        assert last in (1, 666)
        assert (row.status == "done") == (last == 1 or not signed)
        if row.status == "done":
            assert got[-1] == last
    assert (666 in got) != signed
