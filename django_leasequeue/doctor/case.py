"""A case: the connections over which diagnoses look, and what was already asked there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.apps import apps
from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from django_leasequeue.conf import Conf, get_conf
from django_leasequeue.core.dialect import Dialect, dialect_for
from django_leasequeue.core.inspection.choice import server_for
from django_leasequeue.core.inspection.server import Server, rows

__all__ = ["Case"]


@dataclass
class Case:
    """A queue that is looked at.

    `connection` is as handlers have it, `worker` as a worker has it; both may be the same.
    """

    alias: str
    connection: BaseDatabaseWrapper
    worker: BaseDatabaseWrapper
    conf: Conf = field(default_factory=get_conf)

    @cached_property
    def server(self) -> Server:
        """What answers for this kind of server."""
        return server_for(self.connection)

    @property
    def dialect(self) -> Dialect:
        """The dialect of the database."""
        return dialect_for(self.connection)

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """The settings of the project's sessions and of the server, as they were at first."""
        return self.server.variables(self.connection)

    @cached_property
    def models(self) -> dict[str, type[Model]]:
        """The queue's models by their tables."""
        models = apps.get_app_config("leasequeue").get_models()
        return {model._meta.db_table: model for model in models}

    @cached_property
    def tables(self) -> list[str]:
        """The queue's tables that exist and that the account may read."""
        with self.connection.cursor() as cursor:
            found = set(self.connection.introspection.table_names(cursor)) - self.unseen
        return [table for table in self.models if table in found]

    @cached_property
    def unseen(self) -> set[str]:
        """The queue's tables that the account may not read: whether they exist is not known."""
        return {table for table in self.models if not self.may_read(table)}

    def may_read(self, table: str) -> bool:
        """Tell whether the account may read a table, or is told that there is none.

        MySQL and MariaDB do not list what an account has no privilege on.
        """
        try:
            self.ask(f"SELECT 1 FROM {table} WHERE 1 = 0")  # noqa: S608  (a constant's name)
        except DatabaseError as error:
            return not self.server.is_denied(self.connection, error)
        return True

    def ask(self, sql: str, *params: Any) -> list[Any]:
        """Return the rows of one reading statement."""
        return rows(self.connection, sql, params)
