"""Stop signals to an idle worker: at whatever moment, through whatever thread, it ends at once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from django_leasequeue.runtime.worker import Worker
from tests.faults import watching

#: An idle worker of these tests would sleep so long.
POLL = 60.0
#: The signal is no matter of the database; where a session costs 20 ms, fewer runs have to do.
RUNS, RUNS_ON_SERVERS = 3000, 600
#: Well under the poll interval, on a machine that is busy with other things.
SOON = 5.0


@pytest.fixture
def harmless() -> Iterator[None]:
    """Let a stop signal that comes just before or after a run do nothing to the test itself."""
    before = {number: signal.signal(number, lambda *_: None) for number in STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


STOPS = (signal.SIGTERM, signal.SIGINT)


def idle_worker() -> Worker:
    return Worker(solo=True, poll_min=POLL, poll_max=POLL, grace=600)


class Signaller(threading.Thread):
    """Sends stop signals on demand, from a thread of its own, until it is ended."""

    def __init__(self, send: Callable[[], None], delay: Callable[[], float]) -> None:
        super().__init__(name="signaller")
        self._send, self._delay = send, delay
        self._asked = threading.Semaphore(0)
        self._ended = False

    def ask(self, *_: object) -> None:
        """Have a signal sent soon."""
        self._asked.release()

    def end(self) -> None:
        """Send no more."""
        self._ended = True
        self._asked.release()
        self.join()

    def run(self) -> None:
        while self._asked.acquire() and not self._ended:
            time.sleep(self._delay())
            self._send()


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("harmless")
def test_an_idle_worker_ends_each_of_3000_times(queue_db, db_kind):
    """F2: a signal at a random moment between the start and the sleep of an idle worker."""

    def send() -> None:
        os.kill(os.getpid(), random.choice(STOPS))

    signaller = Signaller(send, lambda: random.uniform(0, 0.004))
    signaller.start()
    slowest = 0.0
    try:
        with watching() as moments:
            moments.on("worker_started", signaller.ask)
            for _ in range(RUNS if db_kind == "sqlite" else RUNS_ON_SERVERS):
                began = time.monotonic()
                assert idle_worker().run() == 0
                slowest = max(slowest, time.monotonic() - began)
                moments.events.clear()
    finally:
        signaller.end()
    assert slowest < SOON


@pytest.mark.usefixtures("harmless")
@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
def test_a_signal_that_another_thread_was_given_ends_the_sleep_as_well(queue_db, number):
    """F2: Python runs the handler in the main thread, but the kernel may wake another."""

    def send() -> None:
        (renewer,) = (t for t in threading.enumerate() if t.name == "leasequeue-renewer")
        assert renewer.ident is not None
        signal.pthread_kill(renewer.ident, number)

    signaller = Signaller(send, lambda: 0.2)  # asleep by then, or else it is the easier case
    signaller.start()
    began = time.monotonic()
    try:
        with watching() as moments:
            moments.on("claim_empty", signaller.ask)
            assert idle_worker().run() == 0
    finally:
        signaller.end()
    assert time.monotonic() - began < SOON


@pytest.mark.usefixtures("harmless")
def test_a_worker_that_has_ended_may_be_told_to_stop_again(queue_db):
    worker = idle_worker()
    worker.stop()
    assert worker.run() == 0
    worker.stop()
