"""Fixtures of the doctor's tests: cases over sessions that a test may set up as it likes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue.doctor.case import Case
from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import run

LEVELS: dict[str, dict[str, Any]] = {
    "mysql": {name: name for name in ("read committed", "repeatable read", "serializable")},
    # psycopg.IsolationLevel
    "postgresql": {"read committed": 2, "repeatable read": 3, "serializable": 4},
}


@pytest.fixture
def case(
    connection: BaseDatabaseWrapper, alias: str, second_connection: Callable[..., Any]
) -> Iterator[Callable[..., Case]]:
    """A factory: `case("SET …", isolation="serializable")` is of sessions set up like that."""
    workers: list[BaseDatabaseWrapper] = []

    def make(*statements: str, **options: Any) -> Case:
        project = second_connection()
        project.settings_dict = copy.deepcopy(project.settings_dict)
        if "isolation" in options:
            level = LEVELS[project.vendor][options.pop("isolation")]
            options["isolation_level"] = level
        project.settings_dict["OPTIONS"].update(options)
        for statement in statements:
            run(project, statement)
        workers.append(open_control(alias, 60))
        return Case(alias, project, workers[-1])

    yield make
    for worker in workers:
        worker.close()


@pytest.fixture
def changed(connection: BaseDatabaseWrapper) -> Iterator[Callable[[str, str], None]]:
    """A function: change the database by one statement, and at the end back by another."""
    back: list[str] = []

    def change(statement: str, undo: str) -> None:
        run(connection, statement)
        back.append(undo)

    yield change
    for undo in reversed(back):
        run(connection, undo)
