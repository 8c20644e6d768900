"""Signed jobs on a real database: verified in value, altered ones dead without having run."""

from __future__ import annotations

import json

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from django_leasequeue import EnqueueError, enqueue, enqueue_many, requeue, reschedule, sign, verify
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.recover import recover_batch
from django_leasequeue.core.sealing import sealed_claim
from django_leasequeue.models import Job
from django_leasequeue.outcomes import End
from django_leasequeue.signing import check_signature
from tests.core.arrange import claim_one, expire, job, outcomes, run, snapshot, write
from tests.field.workers import drain
from tests.unit.test_codec_accepted import documents

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
NEW, OLD = "n" * 32, "o" * 32


@pytest.fixture(autouse=True)
def keys(settings):
    def use(*keys):
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": list(keys)}

    use(NEW, OLD)
    return use


@pytest.fixture
def ran(declare):
    """What the handler "signed" was called with, and its hook."""
    calls: list[object] = []

    @declare("signed", failed=lambda context, error: calls.append(error), max_attempts=3)
    def signed(**payload):
        calls.append(payload)

    @declare("signed.too")
    def too(**payload):
        calls.append(payload)

    return calls


@hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(payload=documents, context=documents)
def test_what_comes_back_is_what_was_signed(connection, context_of, payload, context):
    """Case D1, as a property: any payload and any context, through this database."""
    context_of(context)
    made = enqueue("signed", payload)
    claimed = claim_one(connection)
    check_signature(sealed_claim(claimed), claimed.signature)
    assert verify(Job.objects.get(pk=made.id))
    run(connection, "DELETE FROM leasequeue_job WHERE id = %s", [made.id])


@pytest.fixture
def context_of(monkeypatch):
    """Have the middleware put this into the context of every job."""

    def use(context):
        monkeypatch.setattr(
            "django_leasequeue.middleware.chain.Chain.context_for", lambda *about: context
        )

    return use


@pytest.mark.parametrize(
    "payload",
    [
        {"bb": 1, "a": {"z": 1, "y": [1.0, 1e2, 1e-7, 2**63 - 1, 2.0**70]}, "é": "😀"},
        {"n": [1e22, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 2.0**63, -(2**63)]},
        {"aaa": 1, "b": 2, "\uffff": 3, "\U00010000": 4, "": 5, '"\\': 6},
    ],
)
def test_the_json_of_the_database_is_not_the_json_that_was_signed(connection, ran, payload):
    """Case D1: the handler gets equal values, on every database."""
    made = enqueue("signed", payload)
    drain()
    assert ran == [payload]
    assert (job(made.id).status, verify(job(made.id))) == ("done", True)


@pytest.mark.parametrize("number", [2**63, 2**70])
def test_a_number_that_a_database_would_change_is_refused(connection, ran, number):
    """Case D1: MySQL makes a float of it, which nobody has signed."""
    with pytest.raises(EnqueueError, match="64 bit range"):
        enqueue("signed", {"bb": 1, "a": {"z": 1, "y": [1.0, 1e2, 1e-7, number]}, "é": "😀"})
    assert not Job.objects.exists()


def test_every_way_to_enqueue_signs(connection, ran):
    made = enqueue("signed", {"n": 1}, key="a", key_until="finished")
    many = enqueue_many([("signed", {"n": n}, {"max_attempts": 2 + n}) for n in range(3)])
    for one in (made, *many):
        assert verify(Job.objects.get(pk=one.pk))
    assert job(made.id).signature == sign(job(made.id))


@pytest.mark.parametrize("until", ["forever", "finished"])
def test_a_replaced_job_is_signed_anew(connection, ran, until):
    """The row keeps its idempotency_key, which is covered."""
    options = {"key": "a", "key_until": until, "on_conflict": "replace"}
    made = enqueue("signed", {"n": 1}, max_attempts=2, **options)
    again = enqueue("signed", {"n": 2}, max_attempts=4, **options)
    assert (again.pk, again.created) == (made.pk, False)
    assert verify(job(made.id))
    drain()
    assert ran == [{"n": 2}]


def test_a_job_that_ends_before_it_is_replaced(connection, ran):
    options = {"key": "a", "key_until": "finished", "on_conflict": "replace"}
    made = enqueue("signed", {"n": 1}, **options)
    claim_one(connection)
    again = enqueue("signed", {"n": 2}, **options)
    assert (again.pk, again.created) == (made.pk, False)
    assert job(made.id).payload == {"n": 1}


@pytest.mark.only_on("mariadb", "mysql")
def test_a_job_that_a_snapshot_does_not_show_is_replaced(session, as_default, ran):
    """Its row has another idempotency_key, which a plain read would not see."""
    options = {"key": "a", "key_until": "finished", "on_conflict": "replace"}
    repeatable, other = session("repeatable"), session()
    with as_default(repeatable), transaction.atomic():
        assert not Job.objects.exists()  # the snapshot
        with as_default(other):
            made = enqueue("signed", {"n": 1}, **options)
        again = enqueue("signed", {"n": 2}, **options)
        assert (again.pk, again.created) == (made.pk, False)
    assert job(made.id).payload == {"n": 2}
    assert verify(job(made.id))


def test_a_signature_costs_no_statement(connection, django_assert_num_queries):
    with django_assert_num_queries(1):
        enqueue("signed", {"n": 1})


def rejected(job_id, reason, times=1):
    row = job(job_id)
    assert (row.status, row.attempts) == ("dead", 1)
    assert row.last_error == f"RejectedJob: {reason}"
    assert (row.lease_until, outcomes(job_id)) == (None, ["rejected"] * times)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("signature", "0" * 64),
        ("job_type", "signed.too"),
        ("queue_name", "other"),
        ("max_attempts", 30),
        ("idempotency_key", "ab" * 32),
        ("payload_version", 0),
    ],
)
def test_a_changed_column(connection, ran, column, value):
    """Case D4: dead at once, and neither the handler nor the hook has run."""
    made = enqueue("signed", {"n": 1})
    write(connection, made.id, **{column: value})
    drain()
    rejected(made.id, "Invalid signature")
    assert ran == []


@pytest.mark.parametrize("column", ["payload", "context"])
def test_changed_json(connection, ran, column):
    """Case D4: swapped between two jobs, too."""
    one, other = enqueue("signed", {"n": 1}), enqueue("signed", {"n": 2})
    mark = dialect_for(connection).json_param
    run(
        connection,
        f"UPDATE leasequeue_job SET {column} = {mark} WHERE id = %s",
        [json.dumps({"n": 2}), one.id],
    )
    drain()
    rejected(one.id, "Invalid signature")
    assert ran == [{"n": 2}]
    assert job(other.id).status == "done"


def test_a_replayed_job(connection, ran):
    """Case D4: a copy needs another key, and does not fit then; others go on."""
    made = enqueue("signed", {"n": 1})
    copy = enqueue("signed", {"n": 1})
    write(connection, copy.id, signature=job(made.id).signature)
    drain()
    rejected(copy.id, "Invalid signature")
    assert ran == [{"n": 1}]


def test_a_plain_insert_is_unsigned(connection, ran):
    """Case D4 and seed S2: an unsigned job is rejected without another attempt."""
    run(
        connection,
        "INSERT INTO leasequeue_job (job_type, payload, idempotency_key) VALUES (%s, %s, %s)",
        ["signed", "{}", "ab" * 32],
    )
    made = Job.objects.get()
    drain()
    rejected(made.pk, "Missing signature")
    assert ran == []


def test_another_key_then_the_right_one(connection, ran, keys):
    """Case D4: web and worker differ; after the repair a requeue is enough."""
    keys("some other key of the web")
    made = enqueue("signed", {"n": 1})
    keys(NEW)
    drain()
    rejected(made.id, "Invalid signature")
    keys(NEW, "some other key of the web")
    assert requeue(made.id) == [made.id]
    drain()
    assert (job(made.id).status, ran) == ("done", [{"n": 1}])


def test_a_requeue_does_not_sign(connection, ran):
    """Case D4: signing anew is a deliberate act of its own."""
    made = enqueue("signed", {"n": 1})
    write(connection, made.id, max_attempts=9)
    drain()
    assert requeue(made.id) == [made.id]
    drain()
    rejected(made.id, "Invalid signature", times=2)
    assert ran == []


@pytest.mark.parametrize("change", [{"job_type": "signed.too"}, {"signature": ""}])
def test_a_requeue_with_a_payload_signs_no_forged_job(connection, ran, change):
    """Case D4: the operator mends the payload and would sign the forged type with it."""
    made = enqueue("signed", {"n": 1})
    write(connection, made.id, **change)
    drain()
    before = snapshot(connection)
    with pytest.raises(EnqueueError, match="missing or wrong"):
        requeue(made.id, payload={"n": 2})
    assert snapshot(connection) == before


def test_rotation(connection, ran, keys):
    """Case D4: old keys verify until they are taken away."""
    keys(OLD)
    waiting, late = enqueue("signed", {"n": 1}), enqueue("signed", {"n": 2}, delay=60)
    keys(NEW, OLD)
    drain()
    assert job(waiting.id).status == "done"
    keys(NEW)
    reschedule(late.id)
    drain()
    rejected(late.id, "Invalid signature")


def test_what_does_not_change_a_signature(connection, ran):
    made = enqueue("signed", {"n": 1}, delay=60)
    reschedule(made.id)
    held = claim_one(connection)
    expire(connection, made.id)
    recover_batch(connection)
    assert held.signature
    drain()
    assert (job(made.id).status, ran) == ("done", [{"n": 1}])


@pytest.mark.parametrize("signature", ["", "0" * 64])
def test_a_forged_job_that_died_of_something_else_has_no_hook(connection, ran, signature):
    """A forged row can be dead before a worker saw its signature: attempts used up, a crash."""
    made = enqueue("signed", {"n": 1})
    write(connection, made.id, signature=signature, attempts=3)
    drain()  # finds it used up
    drain()  # looks for the dead at its start
    row = job(made.id)
    assert (row.status, row.lease_until, row.bury_tries) == ("dead", None, 1)
    assert ran == []


def test_a_right_one_that_died_has_its_hook(connection, ran):
    made = enqueue("signed", {"n": 1})
    write(connection, made.id, attempts=3)
    drain()
    drain()
    assert [type(error).__name__ for error in ran] == ["JobError"]
    assert job(made.id).lease_until is None


def test_validation_does_not_run_before_the_signature_is_checked(connection, declare, attempt):
    """What a type checks of its payload is project code, too."""
    seen = []

    @declare("checked")  # type: ignore[untyped-decorator]
    def checked(n: int):
        seen.append(n)

    made = enqueue("checked", {"n": 1})
    write(connection, made.id, signature="0" * 64)
    mark = dialect_for(connection).json_param
    sql = f"UPDATE leasequeue_job SET payload = {mark} WHERE id = %s"
    run(connection, sql, [json.dumps({"m": 1}), made.id])
    outcome = attempt(claim_one(connection))
    assert outcome.error.text == "RejectedJob: Invalid signature"
    assert (outcome.end, outcome.bury, seen) == (End.REJECTED, False, [])


def test_nothing_of_keys_or_payloads_is_logged(connection, ran, caplog):
    """Case I15: ids and names only, whatever the level."""
    caplog.set_level("DEBUG")
    enqueue("signed", {"password": "hunter2-hunter2"}, key="jane@example.com")
    forged = enqueue("signed", {"password": "hunter2-hunter2"})
    write(connection, forged.id, signature="0" * 64)
    drain()
    lines = [
        json.dumps(vars(record), default=str)
        for record in caplog.records
        if "django.db" not in record.name
    ]
    assert any("Invalid signature" in line for line in lines)
    for secret in ("hunter2", "jane@example.com", NEW, OLD):
        assert not [line for line in lines if secret in line]
