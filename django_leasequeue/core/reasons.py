"""Why a database refuses to serve, in fixed words: the server's own may hold names and values."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import family_of

__all__ = ["describe"]

_TLS = "no verified TLS connection: check the CA file and the host name, see docs/privileges.md"
_LOGIN = "the server refuses the login: check user, password and the host it may come from"
_GRANT = "this account lacks a grant, see docs/privileges.md"
_TABLE = "a table or column is missing: run 'manage.py migrate'"
_DATABASE = "no such database, or none for this account"

#: By the server's code: MySQL's and MariaDB's are numbers, PostgreSQL's are texts.
_BY_CODE: dict[Any, str] = {
    2026: _TLS,
    3159: _TLS,
    1045: _LOGIN,
    1698: _LOGIN,
    "28000": _LOGIN,
    "28P01": _LOGIN,
    1142: _GRANT,
    1143: _GRANT,
    1227: _GRANT,
    "42501": _GRANT,
    1054: _TABLE,
    1146: _TABLE,
    "42P01": _TABLE,
    "42703": _TABLE,
    1044: _DATABASE,
    1049: _DATABASE,
    "3D000": _DATABASE,
}
#: By a word of libpq's, whose failures to connect have no code.
_BY_WORD = {
    "certificate": _TLS,
    "SSL": _TLS,
    "no encryption": _TLS,
    "authentication failed": _LOGIN,
    "pg_hba.conf": _LOGIN,
}


def describe(connection: BaseDatabaseWrapper, error: BaseException) -> str:
    """Return an error's class, and after it what to do where the database refuses for good."""
    name = type(error).__qualname__
    if not isinstance(error, DatabaseError | InterfaceError):
        return name
    code = family_of(connection).code_of(error)
    reason = _BY_CODE.get(code) if code is not None else _by_word(str(error))
    return f"{name}: {reason}" if reason else name


def _by_word(text: str) -> str | None:
    return next((reason for word, reason in _BY_WORD.items() if word in text), None)
