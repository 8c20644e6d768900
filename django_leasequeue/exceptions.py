"""Every exception of the queue, in one place.

What a job author raises is in `outcomes`-speaking names (Skip, Snooze, Retry, Reject); what the
queue raises says what to do next. Interrupts derive from BaseException so that a handler's
`except Exception` cannot eat them.
"""

from __future__ import annotations

from datetime import timedelta

__all__ = [
    "EnqueueError",
    "JobCancelled",
    "JobCrashed",
    "JobError",
    "JobExpired",
    "JobInterrupted",
    "JobTimeout",
    "KeyTaken",
    "LeaseLost",
    "LeaseQueueError",
    "Reject",
    "RejectedJob",
    "Retry",
    "ScheduleError",
    "Skip",
    "Snooze",
    "UnknownJobType",
]


class LeaseQueueError(Exception):
    """Base of every error of the queue that is an ordinary exception."""


class JobError(LeaseQueueError):
    """A failure whose message its author vouches for.

    Raise it, or a subclass, in a handler: the attempt fails and is tried again as usual, and the
    message is stored with the attempt. The messages of other exceptions are not stored, because
    they may carry payload values or secrets (seed S1: "Keep credentials and sensitive payload
    fields out of logs and last_error").
    """


class RejectedJob(JobError):
    """The job can never run: malformed payload, unknown job type, arguments that do not fit.

    The job is dead at once, without another attempt (seeds S1 and S2).
    """


class UnknownJobType(RejectedJob):
    """This worker's code does not know the job's type, or not its payload's version.

    Another worker's code may, in a rolling deploy for one.
    """


class EnqueueError(LeaseQueueError, ValueError):
    """The job was refused before anything was written; the message says what to change."""


class ScheduleError(LeaseQueueError, ValueError):
    """The schedule was refused before anything was written; the message says what to change."""


class KeyTaken(EnqueueError):
    """`on_conflict="raise"` was asked for and the key belongs to another job.

    `job_id` is the id of the job that has the key.
    """

    def __init__(self, message: str, job_id: int = 0) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobCrashed(JobError):
    """The process that ran the job died; given to the `failed` hook of such a job.

    Nobody raises it: the process is gone. Its text is the attempt's.
    """


class JobExpired(JobError):
    """The job's lease ran out on its last attempt; given to the `failed` hook of such a job.

    Nobody raises it. Its text is the attempt's (seed S1: "Lease expired after final attempt").
    """


class JobInterrupted(BaseException):
    """The queue ends this attempt from outside. Let it pass: catching it changes nothing."""


class LeaseLost(JobInterrupted):
    """This worker no longer holds the job's lease; nothing of this attempt may be written.

    A stale worker can neither finish nor reschedule a job (seed S1). Let it pass: it is no
    Exception, so that `except Exception` does not eat it.
    """


class JobTimeout(JobInterrupted):
    """The attempt ran longer than its time limit, in seconds: the row's, its job type's, TIMEOUT's.

    Let it pass: it is no Exception (seed S2's timeout ends the process).
    """


class JobCancelled(JobInterrupted):
    """An operator cancelled the job while it ran, about two seconds ago at most.

    Let it pass: it is no Exception, and nothing of this attempt may be written any more.
    """


class Skip(LeaseQueueError):
    """End the job as done without its work having been needed; `reason` is stored.

    It counts as a success (seed S2).
    """

    reason = ""  # of a subclass that does not call its base

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


class Snooze(LeaseQueueError):
    """Put the job back for later and give its attempt back.

    `delay` is seconds or a timedelta, at least 0; `reason` is stored.
    """

    delay: float | timedelta = 0
    reason = ""

    def __init__(self, delay: float | timedelta, reason: str = "") -> None:
        super().__init__(reason)
        self.delay = delay
        self.reason = str(reason)


class Retry(LeaseQueueError):
    """Fail this attempt in an expected way; `reason` is stored.

    `delay` is seconds or a timedelta until the next attempt; None leaves it to the job's backoff.
    The job is dead when its attempts are used up.
    """

    delay: float | timedelta | None = None
    reason = ""

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason)
        self.delay = delay
        self.reason = str(reason)


class Reject(LeaseQueueError):
    """The job must not be tried again: dead at once; `reason` is stored.

    For what no later attempt can mend (seed S1: permanent failures).
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = str(reason)
