"""Several workers in one process: stopped together, ended together, one exit code.

The workers are stand-ins that do what they are told; real ones run in tests/process.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from django_leasequeue.runtime.fleet import run_fleet

WAIT_SECONDS = 10


class StandIn:
    """A worker that runs until it is told to end, and notes what it was told."""

    def __init__(
        self, name="a", *, code=0, until="stop", begin=lambda: None, when_stopped=lambda: None
    ):
        self.name = name
        self.told = []
        self.threads = []
        self._code = code
        self._until = until
        self._begin = begin
        self._when_stopped = when_stopped
        self._end = threading.Event()

    def run(self):
        self.threads.append(threading.current_thread())
        self._begin()
        if self._until is not None:
            assert self._end.wait(WAIT_SECONDS)
        return self._code

    def stop(self):
        self._tell("stop")
        self._when_stopped()

    def abort(self):
        self._tell("abort")

    def _tell(self, word):
        self.told.append(word)
        if word == self._until:
            self._end.set()


def to_this_process(number):
    """Return a function that sends the signal to the process that runs the test."""
    return lambda: os.kill(os.getpid(), number)


@pytest.fixture(autouse=True)
def _leaves_nothing():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    threads = set(threading.enumerate())
    yield
    after = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert after == before
    assert set(threading.enumerate()) == threads
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_it_ends_when_all_have_ended():
    second_may_end = threading.Event()

    def end_second_after_first():
        for thread in threading.enumerate():
            if thread.name == "worker a":
                thread.join(WAIT_SECONDS)
        second_may_end.set()

    first = StandIn("a", until=None)
    second = StandIn("b", until=None, begin=lambda: second_may_end.wait(WAIT_SECONDS))
    third = StandIn("c", until=None, begin=end_second_after_first)
    assert run_fleet([first, second, third]) == 0
    assert first.told == []
    threads = {worker.threads[0] for worker in (first, second, third)}
    assert len(threads) == 3
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_stops_all(number):
    workers = [StandIn("a"), StandIn("b", begin=to_this_process(number))]
    assert run_fleet(workers) == 0
    assert [worker.told for worker in workers] == [["stop"], ["stop"]]


def test_the_second_signal_aborts_all():
    first = StandIn("a", until="abort", when_stopped=to_this_process(signal.SIGTERM))
    second = StandIn("b", until="abort", begin=to_this_process(signal.SIGINT))
    assert run_fleet([first, second]) == 0
    assert [worker.told for worker in (first, second)] == [["stop", "abort"]] * 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_worker_that_fails_stops_the_others_and_gives_the_code(order):
    workers = [StandIn("a"), StandIn("b", code=1, until=None)]
    assert run_fleet([workers[index] for index in order]) == 1
    assert workers[0].told == ["stop"]


def test_the_first_failure_is_the_exit_code():
    last = StandIn("a", code=3)
    assert run_fleet([last, StandIn("b", code=2, until=None)]) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_raises_is_a_failure():
    def break_down():
        raise MemoryError

    workers = [StandIn("a"), StandIn("b", begin=break_down)]
    assert run_fleet(workers) == 1
    assert workers[0].told == ["stop"]


def test_a_thread_that_cannot_be_started_leaves_none_behind(monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name == "worker b":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    workers = [StandIn("a"), StandIn("b"), StandIn("c")]
    with pytest.raises(RuntimeError, match="new thread"):
        run_fleet(workers)
    assert not workers[0].threads[0].is_alive()
    assert workers[2].threads == []


def test_outside_of_the_main_thread_the_signals_are_left_alone():
    handlers = []

    def note_handler():
        handlers.append(signal.getsignal(signal.SIGTERM))

    codes = []
    worker = StandIn(until=None, begin=note_handler)
    thread = threading.Thread(target=lambda: codes.append(run_fleet([worker])))
    thread.start()
    thread.join(WAIT_SECONDS)
    assert codes == [0]
    assert handlers == [signal.getsignal(signal.SIGTERM)]
