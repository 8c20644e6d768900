"""Trust in a lease follows what is committed, not what a handler's transaction began."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.db import transaction

from django_leasequeue import JobContext, enqueue
from django_leasequeue.core.lease import Lease
from django_leasequeue.runtime.holds import Hold
from tests.core.arrange import claim_one


class Undone(Exception):
    """Raised by a handler inside its transaction."""


def test_a_transaction_that_is_rolled_back_has_prolonged_nothing():
    hold = Hold(Lease(1, b"t" * 16), 10)
    hold.extend(100)
    hold.prolong(105)
    assert hold.until == 105 + 9.5
    hold.let_go(committed=False)
    assert hold.until == hold.trusted_until == 100 + 9.5


def test_a_transaction_that_is_committed_has():
    hold = Hold(Lease(1, b"t" * 16), 10)
    hold.extend(100)
    hold.prolong(105)
    hold.let_go(committed=True)
    assert hold.until == hold.trusted_until == 105 + 9.5


@pytest.mark.leaves_reserved  # what is looked at is the handler's own view
@pytest.mark.parametrize("form", ["effect", "complete", "checkpoint"])
@pytest.mark.parametrize("undone", [False, True])
def test_what_a_handler_may_trust(connection, alias, declare, attempt, form, undone):
    """By the handler's own clock; the checkpoint of a transaction that is undone is none.

    complete() prolongs no new lease: a job that is done needs none.
    """
    seen = []

    def deed(context: JobContext) -> None:
        if form == "checkpoint":
            with transaction.atomic(using=alias):
                context.checkpoint("here")
                if undone:
                    raise Undone
            return
        block = context.effect("e") if form == "effect" else context.complete()
        with block:
            if undone:
                raise Undone

    @declare("arranged", takes_context=True)
    def handler(context):
        before = context._hold.until
        with suppress(Undone):
            deed(context)
        seen.append((context._hold.until > before, context.last_checkpoint))

    enqueue("arranged")
    attempt(claim_one(connection))
    saved = "here" if form == "checkpoint" and not undone else None
    prolonged = not undone and (form != "complete" or connection.vendor == "sqlite")
    assert seen == [(prolonged, saved)]
