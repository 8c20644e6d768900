"""What makes a confirmation one of its kind: the same for all who look at the same, until one runs.

Tokens count: of those about one thing the next is the last one's and one, so that whoever was
shown the page before a run began brings the token which that run has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.models import BulkRun

__all__ = ["is_token", "next_token", "token_of"]

_LENGTH = 40
_DIGITS = 8


def token_of(*about: object) -> str:
    """Return the token of something that happens once."""
    return _digest(about)


def next_token(connection: BaseDatabaseWrapper, *about: object) -> str:
    """Return the token of the next run about something; raises the database's errors."""
    return _numbered(_digest(about), _next_number(connection, _digest(about)))


def is_token(connection: BaseDatabaseWrapper, token: str, *about: object) -> bool:
    """Tell whether `next_token` returns this, or has done so."""
    digest, _dash, number = token.partition("-")
    if digest != _digest(about) or not re.fullmatch(f"[0-9]{{{_DIGITS}}}", number):
        return False
    return int(number) <= _next_number(connection, digest)


def _next_number(connection: BaseDatabaseWrapper, digest: str) -> int:
    runs = BulkRun.objects.using(connection.alias).filter(
        token__gte=_numbered(digest, 0), token__lte=f"{digest}-{'9' * _DIGITS}"
    )
    last = runs.order_by("-token").values_list("token", flat=True).first()
    return int(last.rpartition("-")[2]) + 1 if last else 0


def _numbered(digest: str, number: int) -> str:
    return f"{digest}-{number:0{_DIGITS}d}"


def _digest(about: Sequence[object]) -> str:
    return hashlib.sha256(repr(about).encode("utf-8", "replace")).hexdigest()[:_LENGTH]
