"""Notices for operators: written from time to time, and not worth an error when they cannot be."""

from __future__ import annotations

from collections.abc import Callable

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.core.dialect import Trouble, trouble
from django_leasequeue.runtime.clock import ticks

__all__ = ["Notice"]

_AFTER_REFUSAL = 60.0


class Notice:
    """When to write one kind of notice again; `refused` is told once of the error's class."""

    def __init__(self, every: float, refused: Callable[[str], None]) -> None:
        self._every = every
        self._say = refused
        self._due = 0.0
        self._refused = False

    @property
    def due(self) -> bool:
        """Tell whether it is time."""
        return ticks() >= self._due

    def write(self, connection: BaseDatabaseWrapper, write: Callable[[], None]) -> None:
        """Call `write`, and be due some seconds later, a minute when the database refuses it.

        Raises what means that the database is away.
        """
        self._due = ticks() + self._every
        try:
            write()
        except (DatabaseError, InterfaceError) as error:
            if trouble(connection, error) is Trouble.RECONNECT:
                raise
            self._due = ticks() + _AFTER_REFUSAL
            if not self._refused:
                self._say(type(error).__qualname__)
            self._refused = True
