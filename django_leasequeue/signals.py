"""Django signals of the queue. A receiver that raises changes nothing: it is logged.

Connect receivers at start-up (`AppConfig.ready`). The sender is the model `Job`; that of
`worker_started` and `worker_stopped` the class `Worker`; that of `jobs_claimed` the runtime's class
that runs handlers, so connect that without a sender. A signal that nobody listens to costs nothing.
"""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import Signal

from django_leasequeue.events import log_event
from django_leasequeue.exceptions import JobInterrupted

__all__ = [
    "QueueSignal",
    "job_dead",
    "job_enqueued",
    "job_finished",
    "job_started",
    "jobs_claimed",
    "lease_lost",
    "worker_started",
    "worker_stopped",
]


class QueueSignal(Signal):
    """A signal with a name for the log."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def tell(self, sender: Any, **arguments: Any) -> list[BaseException]:
        """Send the signal to all receivers and return what some of them raised, logged here.

        Lets nothing through but the interrupts of a running handler.
        """
        if not self.receivers:
            return []
        try:
            answers = self.send_robust(sender, **arguments)
        except JobInterrupted:
            raise
        except BaseException as error:  # noqa: BLE001  (nor may a receiver's exit end a process)
            self._log_robust_failure(None, error)
            return [error]
        return [answer for _receiver, answer in answers if isinstance(answer, BaseException)]

    def _log_robust_failure(self, receiver: Any, err: BaseException) -> None:
        # Instead of Django's own line, which quotes the message: it may hold payload values.
        name = getattr(receiver, "__qualname__", None) or type(receiver).__qualname__
        log_event(
            "signal_failed",
            level=logging.ERROR,
            signal=self.name,
            receiver=name,
            error=type(err).__qualname__,
            raised=err,
        )


#: Sent for each job after its claim is committed, in the process and thread that will run it, and
#: before the stop check there. Arguments: `worker` (the worker's name, str), `jobs` (a list of that
#: one job, read-only; nobody has checked its payload yet).
jobs_claimed = QueueSignal("jobs_claimed")

#: Sent after the insert, inside the caller's transaction, which may still be rolled back.
#: Arguments: `job`, `created` (False when its key was taken).
job_enqueued = QueueSignal("job_enqueued")

#: Sent right before a handler runs, in its thread, under its time limit. Argument: `context`.
job_started = QueueSignal("job_started")

#: Sent where the handler ran, once its end is in the database. Arguments: `context`, `outcome`
#: (an attempt's word, `"completed"` say), `status` (what the job is now), `error` (the exception
#: that ended the attempt, or None).
job_finished = QueueSignal("job_finished")

#: Sent when a job has died, at least once for each death. Arguments: `context`, `error` (the
#: exception, or a JobError with the stored text when it died without its handler's process).
job_dead = QueueSignal("job_dead")

#: Sent where the handler ran when nothing could be written of its attempt, because its lease was
#: gone. Arguments: `context`, `error`.
lease_lost = QueueSignal("lease_lost")

#: Sent in the worker's control process before its first claim. Argument: `worker` (its name).
worker_started = QueueSignal("worker_started")

#: Sent in the worker's control process after its end. Arguments: `worker`, `code` (exit code).
worker_stopped = QueueSignal("worker_stopped")
