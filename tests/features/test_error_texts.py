"""S1, S3: what last_error and the attempt's row say of an error."""

from __future__ import annotations

import pytest

from django_leasequeue import JobError, Reject, Retry, enqueue
from tests.core.arrange import history

pytestmark = pytest.mark.usefixtures("connection")


class BankUnavailable(JobError):
    """Its author vouches for its message."""


@pytest.mark.parametrize(
    ("error", "text", "status"),
    [
        (BankUnavailable("until nine"), "BankUnavailable: until nine", "ready"),
        (Reject("Malformed job payload"), "Reject: Malformed job payload", "dead"),
        (Retry(60, "busy"), "Retry: busy", "ready"),
    ],
)
def test_controlled_errors_show_their_message(declare, finish, error, text, status):
    """S1: those of a DomainException and its like."""

    @declare("t")
    def handler():
        raise error

    made = enqueue("t")
    row = finish()[1]
    assert (row.last_error, row.status) == (text, status)
    assert history(made.id)[0].error_text == text


def test_an_attempt_s_text_names_the_class_only(declare, finish):
    """S3: a fixed text; S1: errors that are not controlled. Their messages may hold anything."""

    @declare("t")
    def handler(card):
        raise ValueError(f"no such card: {card}")

    made = enqueue("t", {"card": "4111"})
    row = finish()[1]
    (attempt,) = history(made.id)
    assert (row.last_error, attempt.error_text, attempt.error_class) == ("ValueError",) * 3
    assert "4111" not in str(attempt.frames)


def test_a_long_text_is_cut(declare, finish):
    """S1: to 4000 characters."""

    @declare("t")
    def handler():
        raise JobError("é" * 5000)

    enqueue("t")
    text = finish()[1].last_error
    assert (len(text), text[:11]) == (4000, "JobError: é")


def test_success_clears_the_last_error(declare, finish, due_again):
    """S1: last_error = NULL at the end; the attempts keep theirs."""

    @declare("t", takes_context=True)
    def handler(context):
        if context.attempt == 1:
            raise JobError("once")

    made = enqueue("t")
    assert finish()[1].last_error == "JobError: once"
    due_again(made.id)
    assert finish()[1].last_error == ""
    assert [one.error_text for one in history(made.id)] == ["JobError: once", ""]


def test_a_result_that_cannot_be_stored_is_told_without_its_keys(declare, finish):
    """Its keys are as much data as its values."""

    @declare("t")
    def handler():
        return {"alice@example.com": {"card": object()}}

    made = enqueue("t")
    row = finish()[1]
    text = "JobError: the result cannot be stored: result[entry 0][entry 0] is a object"
    assert row.last_error.startswith(text)
    assert "alice" not in row.last_error + history(made.id)[0].error_text
