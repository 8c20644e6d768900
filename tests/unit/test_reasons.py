"""Why a database refuses to serve: fixed words, and never the server's own."""

from __future__ import annotations

import pytest
from django.db import OperationalError, ProgrammingError

from django_leasequeue.core.reasons import describe


class Told:
    """A connection, as far as its vendor goes."""

    def __init__(self, vendor: str) -> None:
        self.vendor = vendor


def error_of(kind: type[Exception], code: object, text: str = "secret") -> Exception:
    if isinstance(code, int):
        return kind(code, text)
    error = kind(text)
    if code:
        error.__cause__ = type("Raw", (Exception,), {"sqlstate": code})()
    return error


@pytest.mark.parametrize(
    ("vendor", "error", "words"),
    [
        ("mysql", error_of(OperationalError, 2026), "TLS"),
        ("mysql", error_of(OperationalError, 1045), "refuses the login"),
        ("mysql", error_of(OperationalError, 1142), "lacks a grant"),
        ("mysql", error_of(ProgrammingError, 1146), "manage.py migrate"),
        ("postgresql", error_of(ProgrammingError, "42501"), "lacks a grant"),
        ("postgresql", error_of(ProgrammingError, "42P01"), "manage.py migrate"),
        ("postgresql", error_of(OperationalError, "", "SSL error: certificate secret"), "TLS"),
        (
            "postgresql",
            error_of(OperationalError, "", "password authentication failed for secret"),
            "refuses the login",
        ),
    ],
)
def test_what_waiting_does_not_mend_is_explained(vendor, error, words):
    told = describe(Told(vendor), error)
    assert told.startswith(f"{type(error).__name__}: ")
    assert words in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("vendor", "error"),
    [
        ("mysql", error_of(OperationalError, 2013)),
        ("mysql", error_of(OperationalError, 1213)),
        ("postgresql", error_of(OperationalError, "57P01")),
        ("postgresql", error_of(OperationalError, "", "server closed the connection")),
        ("sqlite", error_of(OperationalError, "", "database is locked")),
        ("mysql", ValueError("secret")),
    ],
)
def test_else_it_is_the_class_alone(vendor, error):
    assert describe(Told(vendor), error) == type(error).__name__
