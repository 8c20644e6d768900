"""What a handler sets in its thread, context or process is not there for the next one."""

from __future__ import annotations

import asyncio
import signal
import zoneinfo
from contextlib import contextmanager

import pytest
from asgiref.sync import sync_to_async
from django.db import connection as connection_of_thread
from django.db import connections
from django.utils import timezone, translation

from django_leasequeue import enqueue
from django_leasequeue.core.settle import Ending, settle
from django_leasequeue.runtime.clock import ticks
from django_leasequeue.runtime.connections import open_control
from django_leasequeue.runtime.executor import Executor
from django_leasequeue.runtime.holds import Hold
from django_leasequeue.runtime.interrupts import Interrupts
from tests.core.arrange import claim_jobs, job, run, running
from tests.core.reports import make_report, reports
from tests.field.slot import opened
from tests.field.workers import drain
from tests.thread_state import UNTOUCHED, VARIABLE, change, state


@pytest.fixture
def slot(connection):
    with opened() as slot:
        yield slot


def changes_and_raises():
    change()
    raise ValueError


async def changes_in_a_coroutine():
    change()
    await asyncio.sleep(0)
    await sync_to_async(change)()


@contextmanager
def changed():
    token = VARIABLE.set("inside")
    try:
        with translation.override("de"), timezone.override(zoneinfo.ZoneInfo("Asia/Tokyo")):
            yield
    finally:
        VARIABLE.reset(token)  # raises in another context than it was set in


def works_in_a_context_manager(context):
    with changed(), context.complete():
        make_report("inside")
        assert state()[:3] == ("inside", "de", "Asia/Tokyo")
    assert state() == UNTOUCHED


# Context variables, language, time zone, decimals ------------------------------------------------


@pytest.mark.parametrize("work", [change, changes_and_raises, changes_in_a_coroutine])
def test_what_it_activates_ends_with_it(slot, work):
    assert slot.result(state) == UNTOUCHED
    slot.attempt(work)
    assert slot.result(state) == UNTOUCHED
    assert slot.do(lambda: state()[:3]) == UNTOUCHED[:3]


def test_a_context_manager_that_spans_the_completion(slot):
    outcome = slot.attempt(works_in_a_context_manager, takes_context=True)
    assert (outcome.end, outcome.settled) == ("completed", True)
    assert reports() == ["inside"]


def test_what_the_thread_has_set_for_itself_is_not_the_handlers(slot):
    slot.do(change)
    assert slot.result(state) == UNTOUCHED


def test_its_connections_are_those_of_the_thread(slot):
    """A handler's connection is cleaned up after it, though the handler ran in a context."""
    inside = slot.result(lambda: connections["default"])
    assert slot.do(lambda: connections["default"]) is inside


def test_in_a_worker(connection, declare):
    declare("changes")(change)
    declare("raises", max_attempts=1)(changes_and_raises)
    declare("looks")(lambda: list(state()))
    ids = [enqueue(name).id for name in ("looks", "changes", "looks", "raises", "looks")]
    drain()
    assert [job(job_id).result for job_id in ids[::2]] == [list(UNTOUCHED)] * 3


# Signals -----------------------------------------------------------------------------------------


def replaces_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


def replaces_signals_and_raises():
    replaces_signals()
    raise ValueError


@pytest.mark.parametrize("work", [replaces_signals, replaces_signals_and_raises])
def test_signal_handlers_are_the_workers_again(connection, declare, session, as_default, work):
    """Else a worker would not hear that it is to stop. In the main thread, as children run."""
    declare("arranged")(lambda n: work())
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    before = [signal.getsignal(number) for number in numbers]
    (claimed,) = running(connection)
    hold = Hold(claimed.lease, 60)
    hold.extend(ticks())
    with as_default(session()):
        outcome = Executor("default", Interrupts(), lambda: False).execute(claimed, hold, None)
    assert [signal.getsignal(number) for number in numbers] == before
    settle(connections["default"], [Ending(claimed.lease, outcome)])


# The statements that Django keeps under DEBUG ----------------------------------------------------


def asks(times):
    for _ in range(times):
        run(connection_of_thread, "SELECT 1")
    return len(connection_of_thread.queries_log)


def test_statements_are_kept_for_the_running_job_only(slot, settings):
    """G4: those of one job, and not those of the next ten thousand."""
    settings.DEBUG = True
    slot.attempt(lambda: asks(50))
    assert [slot.result(lambda: asks(3)) for _ in range(20)] == [3] * 20
    assert slot.do(lambda: len(connection_of_thread.queries_log)) <= 3


def test_a_workers_own_connection_keeps_none(settings, connection):
    """G4: however often it polls."""
    settings.DEBUG = True
    control = open_control("default", 60)
    try:
        for _ in range(100):
            assert claim_jobs(control) == []
        assert len(control.queries_log) == 0
    finally:
        control.close()
