"""The list of all metrics: names, kinds, labels and what they mean. The documentation has it, too.

Labels are bounded: job types that the code does not know are "other", queues are capped.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["FAMILIES", "Family"]


class Family(NamedTuple):
    """One metric; a counter's samples have `_total` at the end of their name."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


_BY_TYPE = ("worker", "job_type")
_DATABASE = ("database",)
_QUEUE = ("database", "queue")
_LISTED = (
    # What a worker counts
    Family("leasequeue_claims", "counter", _BY_TYPE, "Jobs claimed."),
    Family("leasequeue_claim_seconds", "histogram", ("worker",), "Time of one claim."),
    Family(
        "leasequeue_attempts", "counter", (*_BY_TYPE, "outcome"), "Attempts that ended, on record."
    ),
    Family("leasequeue_handler_seconds", "histogram", _BY_TYPE, "Time that a handler ran."),
    Family(
        "leasequeue_settle_seconds",
        "histogram",
        ("worker",),
        "From an attempt's end until it was in the database.",
    ),
    Family("leasequeue_retries", "counter", _BY_TYPE, "Failed attempts whose job runs again."),
    Family("leasequeue_dead", "counter", _BY_TYPE, "Jobs that became dead."),
    Family("leasequeue_parked", "counter", _BY_TYPE, "Jobs parked: unknown to the worker's code."),
    Family("leasequeue_lease_losses", "counter", _BY_TYPE, "Attempts that ended without a lease."),
    Family(
        "leasequeue_recoveries",
        "counter",
        ("worker", "status"),
        "Expired leases of any worker taken back; the job is ready or dead.",
    ),
    Family("leasequeue_releases", "counter", ("worker", "started"), "Claims given back."),
    Family(
        "leasequeue_release_failures",
        "counter",
        ("worker", "reason"),
        "Claims that could not be given back: the lease was lost, or the database not reached.",
    ),
    Family("leasequeue_burials", "counter", (*_BY_TYPE, "outcome"), "`failed` hooks that ended."),
    Family(
        "leasequeue_schedule_lateness_seconds",
        "histogram",
        ("worker",),
        "From a schedule's tick until its job was in the database.",
    ),
    Family(
        "leasequeue_schedule_refusals",
        "counter",
        ("worker",),
        "Ticks that a schedule's faults kept from being taken.",
    ),
    Family("leasequeue_database_outages", "counter", ("worker",), "Outages of the database."),
    Family("leasequeue_fatal_errors", "counter", ("worker",), "Fatal errors; the worker ends."),
    # How a worker is
    Family("leasequeue_worker_ready", "gauge", ("worker",), "1 while it claims jobs, else 0."),
    Family(
        "leasequeue_worker_loop_age_seconds", "gauge", ("worker",), "Since its loop last turned."
    ),
    Family("leasequeue_worker_held_jobs", "gauge", ("worker",), "Jobs that it holds a lease of."),
    Family("leasequeue_log_lines_dropped", "counter", (), "Lines that control could not write."),
    Family("leasequeue_build_info", "gauge", ("version",), "1, for its label."),
    # How much lies in the database
    Family(
        "leasequeue_database_up", "gauge", _DATABASE, "1 when the gauges could be read, else 0."
    ),
    Family("leasequeue_gauges_age_seconds", "gauge", _DATABASE, "Since the gauges were read."),
    Family(
        "leasequeue_gauges_complete", "gauge", _DATABASE, "0 when there are more queues than shown."
    ),
    Family("leasequeue_queue_ready", "gauge", _QUEUE, "Due jobs, at most 10 000."),
    Family("leasequeue_queue_scheduled", "gauge", _QUEUE, "Ready later, at most 10 000."),
    Family("leasequeue_queue_reserved", "gauge", _QUEUE, "Held by workers, at most 10 000."),
    Family("leasequeue_queue_dead", "gauge", _QUEUE, "Dead letters, at most 10 000."),
    Family("leasequeue_queue_parked", "gauge", _QUEUE, "Parked jobs, at most 10 000."),
    Family(
        "leasequeue_queue_oldest_ready_seconds",
        "gauge",
        _QUEUE,
        "Since the oldest due job became due; 0 without one.",
    ),
    Family("leasequeue_queue_paused", "gauge", _QUEUE, "1 while it is paused, else 0."),
    Family(
        "leasequeue_pending_burials", "gauge", _DATABASE, "Dead jobs whose `failed` hook is to run."
    ),
    Family(
        "leasequeue_expired_leases", "gauge", _DATABASE, "Leases that ran out, not recovered yet."
    ),
)
#: All metrics by name.
FAMILIES = {family.name: family for family in _LISTED}
