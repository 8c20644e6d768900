"""Stop signals to a process that starts: it ends in seconds, and leaves no job behind."""

from __future__ import annotations

import random
import signal
import time

import pytest

from django_leasequeue import enqueue
from tests.process import rows
from tests.worker_process import WorkerProcess

STOPS = (signal.SIGTERM, signal.SIGINT)
IDLE = ("--poll-min", "60", "--poll-max", "60")
#: Far below the poll interval; a connection attempt under way may have to run into its bound.
SECONDS = 10
AT_ONCE = 3
#: What happens is no matter of the database, so servers get fewer.
STARTS, STARTS_ON_SERVERS = 30, 9


def test_thirty_idle_workers_end_when_told(queue_db, worker_process, db_kind):
    """F2: real processes, a few at a time, signalled within moments of their first poll."""
    starts = STARTS if db_kind == "sqlite" else STARTS_ON_SERVERS
    for _ in range(starts // AT_ONCE):
        workers = [worker_process(*IDLE) for _ in range(AT_ONCE)]
        for worker in workers:
            worker.wait_event("worker_started")
            time.sleep(random.uniform(0, 0.05))  # the case: any moment will do
            worker.signal(random.choice(STOPS))
        for worker in workers:
            assert worker.wait(SECONDS) == 0
            names = [event["event"] for event in worker.events]
            assert (names, worker.lines) == (["worker_started", "worker_stopped"], [])


def ended(worker: WorkerProcess, number: int) -> int:
    """Return the exit code; press Ctrl-C again where Python itself ignored it, and said so.

    It does that to a KeyboardInterrupt inside its own start, and prints it.
    """
    try:
        return worker.wait(SECONDS / 2)
    except AssertionError:
        if not any("KeyboardInterrupt" in line for line in worker.lines):
            raise
    worker.signal(number)
    return worker.wait(SECONDS)


@pytest.mark.parametrize("number", STOPS, ids=lambda number: number.name)
def test_a_signal_while_python_and_django_load(queue_db, worker_process, number):
    """F6: 0 to 500 ms after the start. Before the worker runs, the signal is the system's."""
    job_id = enqueue("proc.note").id
    for delays in ((0, 0.16, 0.32, 0.5), (0.08, 0.24, 0.4)):
        started = [(worker_process(*IDLE), delay) for delay in delays]
        began = time.monotonic()
        for worker, delay in started:
            time.sleep(max(0.0, began + delay - time.monotonic()))  # the case
            worker.signal(number)
        for worker, _delay in started:
            code = ended(worker, number)
            if worker.named("worker_started"):
                assert code == 0
            else:  # Python itself ends with 1 when Ctrl-C meets its own start
                assert code in (-number, 1)
            claimed = {event["job_id"] for event in worker.named("job_claimed")}
            assert claimed <= {event["job_id"] for event in worker.named("job_completed")}
    stored = rows.job(job_id)
    assert (stored.status, stored.attempts) in (("ready", 0), ("done", 1))


@pytest.mark.only_on("mariadb", "mysql", "postgres")
@pytest.mark.parametrize("trouble", ["cut", "stall"])
def test_a_signal_while_the_database_is_away(queue_db, worker_process, proxy, by_proxy, trouble):
    """F6: nobody listens, or nobody answers; before and after the worker has noticed."""
    getattr(proxy, trouble)()
    # With this lease a connection attempt may take a second, PostgreSQL's two.
    workers = [worker_process("--lease", "5", env=by_proxy) for _ in range(3)]
    for worker in workers:
        worker.wait_event("worker_started")
    workers[-1].wait_event("database_lost")
    began = time.monotonic()
    for worker, number in zip(workers, (*STOPS, signal.SIGTERM), strict=True):
        worker.signal(number)
    for worker in workers:
        assert worker.wait(SECONDS) == 0
        assert (worker.lines, len(worker.named("worker_stopped"))) == ([], 1)
    assert time.monotonic() - began < SECONDS
    proxy.mend()
