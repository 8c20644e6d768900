"""Requeueing or cancelling very many jobs: a run that is a row, and goes on after any crash."""

from __future__ import annotations

from dataclasses import asdict

from django.db import IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from django_leasequeue.conf import get_conf
from django_leasequeue.core.bulk_canary import reopen
from django_leasequeue.core.bulk_chunk import Chunk
from django_leasequeue.core.bulk_drive import Drive, Told
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import SOURCES, Options, Plan, State
from django_leasequeue.core.bulk_preview import preview
from django_leasequeue.core.clock import UtcNow, read_now
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.core.transaction import in_transaction
from django_leasequeue.exceptions import LeaseQueueError
from django_leasequeue.models import BulkRun, DeadGroup, Job

__all__ = ["RunExists", "cancel_many", "cancel_run", "go_on", "requeue_many", "start"]


class RunExists(LeaseQueueError):
    """A run with this token is there already: `run`."""

    def __init__(self, run: BulkRun) -> None:
        super().__init__(f"bulk run {run.pk} was started with this token already")
        self.run = run


def requeue_many(
    wanted: JobFilter | DeadGroup,
    *,
    rate: float | None = None,
    canary: int = 0,
    canary_wait: float = 300,
    spread: float = 0,
    dry_run: bool = False,
    by: str = "",
    told: Told | None = None,
    using: str | None = None,
) -> BulkRun:
    """Make every job that matches ready again, and was so at the start; return the run's row.

    `wanted` is a JobFilter, or a DeadGroup. In chunks of at most 200, a commit each with the run's
    place and counts: a job is requeued once by a run, and after a crash `manage.py leasequeue
    requeue --resume ID` continues it. `rate` is jobs a second. `canary` jobs go first; the others
    follow when all of these are done, and the run stops when one is dead or cancelled, or some have
    not ended after `canary_wait` seconds. `spread` is the number of seconds over which the jobs
    become available, at random. `dry_run` writes nothing and returns a row without id. `by` says
    who, in the row; `told` is called with the row after each chunk. Jobs whose key a live job has
    are left out.
    Raises LeaseQueueError for options that make no sense and inside a transaction.
    """
    options = Options(rate, canary, canary_wait, spread)
    if dry_run:
        return _dry("requeue", _filter(wanted), options, using)
    run = start("requeue", _filter(wanted), options, by=by, using=using)
    return go_on(run.pk, told=told, using=using)


def cancel_many(
    wanted: JobFilter,
    *,
    rate: float | None = None,
    dry_run: bool = False,
    by: str = "",
    told: Told | None = None,
    using: str | None = None,
) -> BulkRun:
    """Cancel every job that matches, as `cancel` does; otherwise as `requeue_many`.

    `wanted` is a JobFilter; it has no canary and no spread. Raises as `requeue_many` does.
    """
    options = Options(rate)
    if dry_run:
        return _dry("cancel", wanted, options, using)
    run = start("cancel", wanted, options, by=by, using=using)
    return go_on(run.pk, told=told, using=using)


def start(
    operation: str,
    wanted: JobFilter,
    options: Options,
    *,
    by: str = "",
    token: str | None = None,
    using: str | None = None,
) -> BulkRun:
    """Write a run that has not begun, and what bounds it; `go_on` does the work.

    Raises RunExists, with that run, if there is one with this token: of callers that bring the
    same, at whatever time, one starts a run.
    """
    connection = _connection(using)
    row = _new(operation, wanted, options, connection)
    row.by, row.token = by[:255], token
    try:
        row.save(force_insert=True, using=connection.alias)
    except IntegrityError as error:
        if token is None or not dialect_for(connection).is_duplicate(error):
            raise
        runs = BulkRun.objects.using(connection.alias)
        raise RunExists(runs.defer("filter").get(token=token)) from None
    row.refresh_from_db(using=connection.alias)
    return row


def go_on(run_id: int, *, told: Told | None = None, using: str | None = None) -> BulkRun:
    """Carry a run on to its end and return its row; several processes may.

    A run that stopped for its canary looks at those jobs again. Raises LeaseQueueError when there
    is no such run, when it is over, and inside a transaction.
    """
    connection = _connection(using)
    reopen(connection, run_id)
    row = BulkRun.objects.using(connection.alias).filter(pk=run_id).first()
    if row is None:
        raise LeaseQueueError(f"there is no bulk run {run_id}: 'requeue --list' shows them")
    if row.state not in (State.CANARY, State.RUNNING):
        raise LeaseQueueError(f"bulk run {run_id} is {row.state}: start a new one")
    Drive(connection, Plan.of(row), told or _nobody).to_the_end()
    row.refresh_from_db(using=connection.alias)
    return row


def cancel_run(run_id: int, *, using: str | None = None) -> bool:
    """End a run for good, whatever process drives it; what it did stays. False: it was over."""
    connection = connections[using or get_conf().DATABASE]
    open_runs = BulkRun.objects.using(connection.alias).filter(
        pk=run_id, state__in=[State.CANARY, State.RUNNING, State.STOPPED]
    )
    now = UtcNow()
    return open_runs.update(state=State.CANCELLED, finished_at=now, updated_at=now) == 1


def _connection(using: str | None) -> BaseDatabaseWrapper:
    connection = connections[using or get_conf().DATABASE]
    if in_transaction(connection):
        raise LeaseQueueError(
            "a bulk run commits chunk by chunk: call it outside of atomic() and ATOMIC_REQUESTS"
        )
    return connection


def _filter(wanted: JobFilter | DeadGroup) -> JobFilter:
    if isinstance(wanted, DeadGroup):
        return JobFilter(fingerprint=wanted.fingerprint)
    return wanted


def _new(
    operation: str, wanted: JobFilter, options: Options, connection: BaseDatabaseWrapper
) -> BulkRun:
    """Return a row that is not written yet, after checking what it is made of."""
    options.check()
    if not set(wanted.statuses) <= set(SOURCES[operation]):
        words = ", ".join(SOURCES[operation])
        raise LeaseQueueError(f"{operation} is for jobs that are {words}")
    jobs = Job.objects.using(connection.alias)
    return BulkRun(
        operation=operation,
        filter=wanted.as_json(),
        options=asdict(options),
        state=State.CANARY if options.canary else State.RUNNING,
        upper_id=jobs.aggregate(most=Max("pk"))["most"] or 0,
    )


def _dry(operation: str, wanted: JobFilter, options: Options, using: str | None) -> BulkRun:
    connection = _connection(using)
    row = _new(operation, wanted, options, connection)
    row.started_at = read_now(connection)
    row.changed, left_out = preview(connection, Plan.of(row))
    row.left_out = dict(left_out)
    return row


def _nobody(chunk: Chunk) -> None:
    """Hear of a chunk, and do nothing."""
