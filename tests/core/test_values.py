"""What was enqueued is what a handler gets, on every database; plain SQL is an enqueue too."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from django_leasequeue import enqueue
from django_leasequeue.codec import decode_payload, encode
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.outcomes import End, Outcome
from tests.core.arrange import claim_jobs, claim_one, job, run, write
from tests.unit.test_codec_accepted import documents

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]

DEEP: object = 1
for _ in range(30):
    DEEP = [DEEP]
PAYLOAD = {
    "": "",
    "é": "😀 \U0010ffff e\u0301 \u200b \x01\x1f\x7f ' \" \\ % %s \n",
    "bb": [1e2, -0.0, 0.1, 1e-7, 5e-324, 1.7976931348623157e308, 1e16, 123456789.125],
    "whole": [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "a": {"z": [], "y": {}, "x": None, "w": [True, False], "same": {"same": 1}},
    "deep": DEEP,
    "A": 1,
    "k ": 1,
    "k": 2,
}


@pytest.mark.parametrize("options", [{}, {"key": "k"}])
def test_a_payload_comes_back_as_it_was(connection, options):
    made = enqueue("t", PAYLOAD, **options)
    assert job(made.id).payload == PAYLOAD
    claimed = claim_one(connection)
    assert isinstance(claimed.payload, str)
    assert decode_payload(claimed.payload) == PAYLOAD


@hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(document=documents)
def test_any_payload_comes_back_as_it_was(connection, document):
    enqueue("t", document)
    assert decode_payload(claim_one(connection).payload) == document


def test_whole_numbers_stay_whole(connection):
    enqueue("t", {"n": 7, "big": 2**63 - 1})
    values = decode_payload(claim_one(connection).payload)
    assert [type(value) for value in values.values()] == [int, int]


def test_a_result_and_all_else_that_is_json(connection):
    made = enqueue("t")
    claimed = claim_one(connection)
    assert claimed.context == "{}"
    assert claimed.checkpoint is None
    result = encode(PAYLOAD, what="result", limit=10_000)
    settle(connection, [Ending(claimed.lease, Outcome(End.COMPLETED, result=result))])
    assert job(made.id).result == PAYLOAD


@pytest.mark.parametrize("checkpoint", ['{"at": 7}', "null"])
def test_what_a_claim_hands_over(connection, checkpoint):
    made = enqueue("t", {"n": 1}, key="k", timeout=1.5, max_attempts=7)
    write(connection, made.id, checkpoint=checkpoint, context='{"a": 1}', signature="s", claims=3)
    claimed = claim_one(connection)
    row = job(made.id)
    assert json.loads(claimed.context) == {"a": 1}
    assert json.loads(claimed.checkpoint or "") == json.loads(checkpoint)
    assert (claimed.job_id, claimed.job_type, claimed.queue) == (made.id, "t", "default")
    assert (claimed.number, claimed.attempt, claimed.max_attempts, claimed.crashes) == (4, 1, 7, 0)
    assert (claimed.idempotency_key, claimed.signature) == (row.idempotency_key, "s")
    assert (claimed.timeout, claimed.enqueued_at) == (1.5, row.created_at)
    assert (claimed.leased_by, claimed.seconds) == (row.leased_by, 60)


# Plain SQL, as another language would write it ---------------------------------------------------


def test_the_four_columns_of_the_contract(connection):
    run(
        connection,
        "INSERT INTO leasequeue_job (queue_name, job_type, payload, idempotency_key) "
        "VALUES ('reports', 'report.generate', '{\"tenant_id\": \"é😀\"}', %s)",
        ["ab" * 32],
    )
    claimed = claim_one(connection, queues="reports")
    assert decode_payload(claimed.payload) == {"tenant_id": "é😀"}
    assert (claimed.attempt, claimed.max_attempts, claimed.number) == (1, 5, 1)
    assert claimed.idempotency_key == "ab" * 32
    (settled,) = settle(connection, [Ending(claimed.lease, Outcome(End.COMPLETED))])
    assert settled.status == "done"


@pytest.mark.parametrize("columns", [{}, {"queue_name": "q"}, {"payload": "{}"}])
def test_fewer_columns_do(connection, columns):
    columns = {"job_type": "t", **columns}
    for _ in range(3):
        run(
            connection,
            f"INSERT INTO leasequeue_job ({', '.join(columns)}) "
            f"VALUES ({', '.join(['%s'] * len(columns))})",
            list(columns.values()),
        )
    claimed = claim_jobs(connection, 9)
    assert len(claimed) == 3
    assert {decode_payload(each.payload) == {} for each in claimed} == {True}
    keys = {each.idempotency_key for each in claimed}
    assert len(keys) == 3
    assert {len(key) for key in keys} == {64}


def test_a_payload_that_is_no_object_can_be_claimed(connection):
    """Plain SQL may write any JSON: it is rejected by the worker, and never stops a claim."""
    for text in ("[1]", "null", '"text"', "7"):
        run(
            connection,
            "INSERT INTO leasequeue_job (job_type, payload) VALUES ('t', %s)",
            [text],
        )
    assert len(claim_jobs(connection, 9)) == 4
