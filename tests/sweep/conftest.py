"""The sweep's fixtures; what a sample was drawn with is printed, for who wants it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections

from django_leasequeue.core import attempts, operating, reading
from django_leasequeue.core import transaction as core_transaction
from tests.core.conftest import attempt, declare
from tests.core.refusing import refusing
from tests.faults import broken, broken_everywhere, codes_for
from tests.sweep.cases import HANDLERS
from tests.sweep.cases.handling import declare_handlers
from tests.sweep.cases.working import UNRESERVED, UNWRITTEN
from tests.sweep.chance import AGAIN, WHOLE, lots
from tests.sweep.rounds import Case
from tests.sweep.sweep import Sweep

__all__ = ["attempt", "declare"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    said = "all of it" if WHOLE else f"a sample; {AGAIN}"
    terminalreporter.write_line(f"crash-point sweep: {said}")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between two tries are for rivals, and here there are none."""
    for module in (core_transaction, attempts, reading, operating):
        monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: None))


@pytest.fixture
def refused_rows(connection) -> Iterator[None]:
    """A database that reserves no jobs of one type, and has none of another."""
    reserved = f"(status = 'reserved' AND job_type = '{UNRESERVED}')"
    with refusing(connection, f"{reserved} OR job_type = '{UNWRITTEN}'"):
        yield


@pytest.fixture
def sweep(
    request: pytest.FixtureRequest, connection, attempt, declare, refused_rows
) -> Callable[[Case], Sweep]:
    """Returns the sweep of a case, on the connections that the case is about."""
    declare_handlers()

    def prepare(case: Case) -> Sweep:
        breaking = broken_everywhere if case in HANDLERS else partial(broken, connection)
        codes = codes_for(connections["default"])
        return Sweep(connection, attempt, breaking, codes, lots(request.node.name))

    return prepare
