"""What the admin shows of payloads: readable, escaped, and without sensitive fields."""

from __future__ import annotations

from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_leasequeue import enqueue, job
from django_leasequeue.admin import display
from django_leasequeue.codec import MASK
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job, JobAttempt
from django_leasequeue.outcomes import End, ErrorSummary, Outcome
from django_leasequeue.registry import registry
from tests.core.arrange import claim_one
from tests.field.slot import opened


@pytest.fixture
def page(connection):
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))

    def get(job_id):
        return client.get(f"/admin/leasequeue/job/{job_id}/change/").content.decode()

    return get


@pytest.fixture
def charge():
    def handler(card, note, password):
        secret_local = password
        raise ValueError(f"<script>{secret_local}</script>")

    yield job("masking.charge", sensitive=("card", "password"))(handler)
    registry.remove("masking.charge")


def test_text_is_readable_and_decoded_once(connection, page):
    """Case D10, on each database: in the admin, from the ORM, and in the column itself."""
    made = enqueue("t", {"héllo": "😀 é \u0301", "who": "Zoë 😀"})
    assert "\n  &quot;héllo&quot;: &quot;😀 é \u0301&quot;" in page(made.id)
    assert list(Job.objects.values_list("payload", flat=True)) == [
        {"héllo": "😀 é \u0301", "who": "Zoë 😀"}
    ]
    assert Job.objects.get(payload__who="Zoë 😀").pk == made.pk
    if connection.vendor != "postgresql":  # where a column of jsonb has no text of its own
        with connection.cursor() as cursor:
            cursor.execute("SELECT payload FROM leasequeue_job")
            assert "😀" in cursor.fetchone()[0]


def test_sensitive_fields_are_masked(page, charge):
    """Case D13: the names that the declaration gives, at any depth."""
    made = charge.enqueue("4111-1111", {"card": {"pin": "pin 1234"}, "text": "visible"}, "hunter2")
    shown = unescape(page(made.id))
    assert f'"card": "{MASK}"' in shown
    assert "visible" in shown
    for secret in ("4111-1111", "pin 1234", "hunter2"):
        assert secret not in shown


@pytest.mark.leaves_reserved
def test_locals_and_messages_are_nowhere(connection, page, charge):
    """Case D13: not in the row, not in the attempt, not in the admin."""
    made = charge.enqueue("4111", "", "hunter2")
    held = claim_one(connection)
    with opened() as slot:
        settle(connection, [Ending(held.lease, slot.execute(held))])
    attempt = JobAttempt.objects.get(job_id=made.id)
    assert (attempt.error_class, attempt.error_text) == ("ValueError", "ValueError")
    assert attempt.frames
    shown = page(made.id)
    for text in (shown, str(attempt.frames), Job.objects.get().last_error):
        assert "hunter2" not in text
        assert "<script>hunter2" not in text


@pytest.mark.leaves_reserved
def test_a_text_that_an_author_vouches_for_is_no_markup(connection, page, charge):
    """Case D13: it is kept, and escaped wherever the admin shows it."""
    error = ErrorSummary("Reject", "Reject: <script>alert(1)</script>")
    made = charge.enqueue("4111", "", "")
    settle(connection, [Ending(claim_one(connection).lease, Outcome(End.REJECTED, error=error))])
    shown = page(made.id)
    assert shown.count("&lt;script&gt;alert(1)") >= 2  # the job's error, and its attempt's
    assert "<script>alert" not in shown


@pytest.mark.parametrize("junk", ["{bad", "[" * 100_000])
def test_what_cannot_be_searched_for_them_is_not_shown(junk):
    assert display.pretty_json(junk, ("card",)) == f"<pre>{MASK}</pre>"
