"""Database errors as drivers raise them, made to order by code."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

#: Errors after which the whole transaction is gone, or has to be: roll back and repeat.
REPEAT: dict[str, tuple[Any, ...]] = {
    "mysql": (1213, 1205, 1020, 3572, 3101, 1180),
    "postgresql": ("40001", "40P01"),
    "sqlite": ("database is locked",),
}
#: Errors after which the connection is gone, or of no use: close, reconnect and repeat.
RECONNECT: dict[str, tuple[Any, ...]] = {
    "mysql": (2002, 2003, 2006, 1047, 1290, 3100, 2013),
    "postgresql": ("08006", "08003", "57P01", None),
    "sqlite": (),
}
#: What the server keeps of the session after the error.
_SEVERS = {2002, 2003, 2006, 2013, "08006", "08003", "57P01", None}
_TEXTS = {1180: "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT"}


def codes_for(connection: BaseDatabaseWrapper) -> list[Any]:
    """Return every code of the design that this database can answer with."""
    vendor = connection.vendor
    return [*REPEAT[vendor], *RECONNECT[vendor]]


def severs(code: Any) -> bool:
    """Tell whether the session is lost with this error."""
    return code in _SEVERS


def make_error(connection: Any, code: Any) -> Exception:
    """Return Django's error with the driver's own as its cause, as a cursor raises it.

    A `code` that is an exception already is returned as it is.
    """
    if isinstance(code, Exception):
        return code
    driver = connection.Database
    if connection.vendor == "postgresql":
        return _postgres_error(driver, code)
    if connection.vendor == "sqlite":
        cause = driver.OperationalError(code)
        error = OperationalError(code)
    else:
        text = _TEXTS.get(code, "injected by a test")
        cause = driver.OperationalError(code, text)
        error = OperationalError(code, text)
    error.__cause__ = cause
    return error


def _postgres_error(driver: Any, code: str | None) -> DatabaseError:
    if code is None:  # libpq's own: the server closed the connection unexpectedly
        cause = driver.OperationalError("consuming input failed: injected by a test")
    else:
        cause = driver.errors.lookup(code)("injected by a test")
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error
