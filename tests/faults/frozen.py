"""Stopping a worker where it stands, as a suspended machine would, and letting it go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.process.rows import is_locked
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess


def freeze(worker: WorkerProcess, job_id: int) -> None:
    """Stop the worker's process at a moment when it holds no lock on the job's row.

    A renewal under way holds one for a moment, which nobody could take from a stopped process.
    """
    wait_until(lambda: _stopped_without_lock(worker, job_id))


def thaw(worker: WorkerProcess) -> None:
    """Let the process go on."""
    os.kill(worker.pid, signal.SIGCONT)


def _stopped_without_lock(worker: WorkerProcess, job_id: int) -> bool:
    os.kill(worker.pid, signal.SIGSTOP)
    state = Path(f"/proc/{worker.pid}/stat")
    wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T")
    if not is_locked(job_id):
        return True
    thaw(worker)
    return False
