"""Stopping a worker where it stands, as a suspended machine would, and letting it go on."""

from __future__ import annotations

from tests.faults.tree import go_on, stop, tree_of
from tests.process.rows import is_locked
from tests.waiting import wait_until
from tests.worker_process import WorkerProcess


def freeze(worker: WorkerProcess, job_id: int) -> None:
    """Stop the worker and its children at a moment when none holds a lock on the job's row.

    A renewal under way holds one for a moment, which nobody could take from a stopped process.
    """
    wait_until(lambda: _stopped_without_lock(worker, job_id))


def thaw(worker: WorkerProcess) -> None:
    """Let the processes go on."""
    go_on(tree_of(worker.pid))


def _stopped_without_lock(worker: WorkerProcess, job_id: int) -> bool:
    stop(tree_of(worker.pid))
    if not is_locked(job_id):
        return True
    thaw(worker)
    return False
