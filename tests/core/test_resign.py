"""`leasequeue sign`: which jobs it signs, which it leaves alone, and what it says."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from django_leasequeue import LeaseQueueError, cancel, enqueue, enqueue_many, verify
from django_leasequeue.core import resign as module
from django_leasequeue.core.resign import Resigned, Selection, resign
from django_leasequeue.models import Job
from tests.core.arrange import claim_one, job, run, snapshot, write
from tests.faults import holding_job

pytestmark = [pytest.mark.usefixtures("connection"), pytest.mark.leaves_reserved]
NEW, OLD = "n" * 32, "o" * 32
EVERYTHING = Selection()


@pytest.fixture(autouse=True)
def keys(settings):
    def use(*keys):
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "SIGNING_KEYS": list(keys)}

    return use


def test_signing_is_off():
    with pytest.raises(LeaseQueueError, match="SIGNING_KEYS"):
        resign(EVERYTHING)
    with pytest.raises(CommandError, match="SIGNING_KEYS"):
        call_command("leasequeue", "sign")


def test_the_roll_out(connection, keys, monkeypatch):
    """More jobs than a batch, ready and running; a running one is signed for its next attempt."""
    monkeypatch.setattr(module, "_BATCH", 3)
    made = enqueue_many([("arranged", {"n": n}, {}) for n in range(8)])
    held = claim_one(connection)
    keys(NEW)
    assert resign(EVERYTHING) == Resigned(signed=8)
    assert all(verify(Job.objects.get(pk=one.pk)) for one in made)
    assert bytes(job(held.job_id).lease_token) == held.lease.token
    assert resign(EVERYTHING) == Resigned(valid=8)


def test_a_dry_run_writes_nothing(connection, keys):
    enqueue("arranged")
    keys(NEW)
    before = snapshot(connection)
    assert resign(EVERYTHING, dry_run=True) == Resigned(signed=1)
    assert snapshot(connection) == before


def test_a_new_key(keys):
    keys(OLD)
    made = enqueue("arranged")
    keys(NEW, OLD)
    assert resign(EVERYTHING) == Resigned(renewed=1)
    keys(NEW)
    assert verify(job(made.id))


def test_a_wrong_signature_needs_force(connection, keys):
    keys(NEW)
    made = enqueue("arranged")
    write(connection, made.id, max_attempts=9)
    assert resign(EVERYTHING) == Resigned(wrong=1)
    assert not verify(job(made.id))
    assert resign(EVERYTHING, force=True, dry_run=True) == Resigned(forced=1)
    assert not verify(job(made.id))
    assert resign(EVERYTHING, force=True) == Resigned(forced=1)
    assert verify(job(made.id))


def test_the_selection(keys):
    for queue, kind in (("a", "x"), ("a", "y"), ("b", "x")):
        enqueue(kind, queue=queue)
    gone = enqueue("x", queue="a")
    cancel(gone)
    keys(NEW)
    assert resign(Selection("a", "x"), dry_run=True).signed == 1
    assert resign(Selection(job_type="x"), dry_run=True).signed == 2
    assert resign(Selection("a", "x", finished=True), dry_run=True).signed == 2
    assert resign(EVERYTHING, dry_run=True).signed == 3


@pytest.mark.parametrize("payload", ["[]", '"{}"', "5"])
def test_what_is_no_payload_is_not_signed(connection, keys, payload):
    made = enqueue("arranged")
    sql = "UPDATE leasequeue_job SET payload = %s WHERE id = %s"
    run(connection, sql, [payload, made.id])
    keys(NEW)
    assert resign(EVERYTHING, force=True) == Resigned(malformed=1)
    assert job(made.id).signature == ""


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_job_that_somebody_holds_is_left_for_later(session, keys):
    held, free = enqueue("arranged"), enqueue("arranged")
    keys(NEW)
    with holding_job(session(), held.id):
        assert resign(EVERYTHING) == Resigned(signed=1, locked=1)
    assert verify(job(free.id))
    assert resign(EVERYTHING) == Resigned(signed=1, valid=1)


def test_the_command(connection, keys):
    enqueue("arranged", queue="a")
    enqueue("arranged", queue="b")
    keys(NEW)
    out = io.StringIO()
    call_command("leasequeue", "sign", "--queue", "a", "--dry-run", stdout=out)
    assert "signed: 1\n" in out.getvalue()
    call_command("leasequeue", "sign", "--all", "--force", "--type", "arranged", stdout=out)
    assert out.getvalue().count("signed: 2\n") == 1
    assert NEW not in out.getvalue()
    assert all(verify(one) for one in Job.objects.all())
