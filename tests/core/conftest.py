"""Fixtures of the core's tests: further sessions, handlers, attempts as a worker runs them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from django_leasequeue import job
from django_leasequeue.core import lanes
from django_leasequeue.core.attempts import last_end
from django_leasequeue.core.bury import take_burials
from django_leasequeue.core.lease import Claimed
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.models import Job
from django_leasequeue.outcomes import Outcome
from django_leasequeue.registry import registry
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.executor import Executor, LastEnd
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from tests.core.arrange import claim_one

ISOLATION: dict[str, dict[str, Any]] = {
    "mysql": {"read": "read committed", "repeatable": "repeatable read"},
    # psycopg.IsolationLevel
    "postgresql": {"read": 2, "repeatable": 3},
}


@pytest.fixture
def session(second_connection: Callable[[], BaseDatabaseWrapper]) -> Callable[..., Any]:
    """A factory of further sessions; `session("repeatable")` has the project's OPTIONS say so."""

    def connect(isolation: str | None = None) -> BaseDatabaseWrapper:
        connection = second_connection()
        if isolation is not None:
            level = ISOLATION[connection.vendor][isolation]
            connection.settings_dict = copy.deepcopy(connection.settings_dict)
            connection.settings_dict["OPTIONS"]["isolation_level"] = level
        return connection

    return connect


@pytest.fixture
def as_default(alias: str) -> Callable[..., AbstractContextManager[None]]:
    """`with as_default(session):` makes what is public act on that session."""

    @contextmanager
    def switch(connection: BaseDatabaseWrapper) -> Iterator[None]:
        before = connections[alias]
        connections[alias] = connection
        try:
            yield
        finally:
            connections[alias] = before

    return switch


@pytest.fixture
def declare() -> Iterator[Callable[..., Any]]:
    """The `@job` decorator; what it declares is forgotten after the test."""
    before = set(registry)
    yield job
    for kind in set(registry) - before:
        registry.remove(kind.name)


@pytest.fixture(params=["complete", "atomic"])
def effects(request: pytest.FixtureRequest, declare: Callable[..., Any]) -> Callable[..., None]:
    """Declares a handler that does `work(context)` in the fenced transaction."""

    def declare_handler(work: Callable[[Any], object], result: Any = None) -> None:
        if request.param == "atomic":

            @declare("arranged", takes_context=True, atomic=True)  # type: ignore[untyped-decorator]
            def handler(context: Any, n: int) -> Any:
                work(context)
                return result

        else:

            @declare("arranged", takes_context=True)  # type: ignore[untyped-decorator]
            def effective(context: Any, n: int) -> None:
                with context.complete(result):
                    work(context)

    return declare_handler


@pytest.fixture
def attempt(alias: str) -> Callable[..., Outcome]:
    """Run one attempt of a claimed job in a thread, as a worker's handler thread would.

    The lease is of so many seconds, and was claimed or renewed `ago` of them ago.
    """

    def execute(claimed: Claimed, *, seconds: float = 60, ago: float = 0) -> Outcome:
        hold = Hold(claimed.lease, seconds)
        hold.extend(ticks() - ago)
        executor = Executor(alias, Interrupts(), lambda: False)
        try:
            return executor.execute(claimed, hold)
        finally:
            connections.close_all()

    def run(claimed: Claimed, **options: Any) -> Outcome:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(execute, claimed, **options).result()

    return run


@pytest.fixture
def finish(connection: BaseDatabaseWrapper, attempt: Callable[..., Outcome]) -> Callable[..., Any]:
    """Run the one attempt that is due and settle it; return its outcome and the row."""

    def run_once() -> tuple[Outcome, Job]:
        held = claim_one(connection)
        outcome = attempt(held)
        settle(connection, [Ending(held.lease, outcome)])
        return outcome, Job.objects.get(pk=held.job_id)

    return run_once


@pytest.fixture
def buried(connection: BaseDatabaseWrapper, alias: str) -> Callable[[int], Outcome]:
    """Run the `failed` hook of a dead job, as a worker that has taken its burial."""

    def execute(job_id: int) -> Outcome:
        names = [kind.name for kind in registry if kind.failed]
        (taken,) = take_burials(
            connection, with_hook=names, without_hook=[], worker="w", seconds=60
        )
        hold = Hold(taken.lease, 60)
        hold.extend(ticks())
        last = LastEnd(*last_end(connection, job_id))
        executor = Executor(alias, Interrupts(), lambda: False)
        with ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(executor.bury, taken, hold, None, last).result()
            pool.submit(connections.close_all).result()
        return outcome

    return execute


@pytest.fixture
def use(settings: Any) -> Callable[..., None]:
    """Set the project's middleware, by class or by path."""

    def install(*members: type | str) -> None:
        paths = [
            one if isinstance(one, str) else f"{one.__module__}.{one.__qualname__}"
            for one in members
        ]
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, "MIDDLEWARE": paths}

    return install


@pytest.fixture
def lane_clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of what a worker remembers of its lanes; a test moves it by setting `now`."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(lanes, "time", clock)
    return clock
