"""An interrupt in the middle of a rollback never turns it into a commit.

Django's atomic() turns autocommit on at its end, whatever happened to the rollback before, and a
connection commits by that what is open on it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.exceptions import JobInterrupted

__all__ = ["close_when_interrupted"]


def close_when_interrupted(connection: BaseDatabaseWrapper) -> None:
    """Have this connection closed where an interrupt on its way out would turn autocommit on."""
    vars(connection)["set_autocommit"] = partial(_set_autocommit, connection)


def _set_autocommit(
    connection: BaseDatabaseWrapper, autocommit: bool, *args: Any, **options: Any
) -> None:
    if autocommit and isinstance(sys.exception(), JobInterrupted):
        with suppress(DatabaseError, InterfaceError):
            connection.close()
    else:
        type(connection).set_autocommit(connection, autocommit, *args, **options)
