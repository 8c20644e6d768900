"""The schema: a documented contract. Only the core writes status, counters and lease columns.

Every column has a database default, so that a plain SQL INSERT of queue_name, job_type, payload
and idempotency_key from any language is a valid enqueue (job_type alone must be given).
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from django_leasequeue.core.clock import RandomKey, UtcNow
from django_leasequeue.fields import ExactCharField, HexField, TokenField, UtcDateTimeField
from django_leasequeue.querysets import JobQuerySet
from django_leasequeue.statuses import Status

__all__ = ["BulkRun", "DeadGroup", "Job", "JobAttempt", "JobEffect", "Queue", "Schedule", "Worker"]

STATUS_CHOICES = [(status.value, _(status.value)) for status in Status]


class Job(models.Model):
    """One unit of work (seed S1's `jobs`)."""

    id = models.BigAutoField(_("id"), primary_key=True)
    queue_name = ExactCharField(_("queue name"), max_length=64, db_default="default")
    job_type = ExactCharField(_("job type"), max_length=255)
    payload = models.JSONField(_("payload"), db_default=models.Value({}, models.JSONField()))
    idempotency_key = HexField(_("idempotency key"), max_length=64, db_default=RandomKey())
    status = HexField(
        _("status"), max_length=16, choices=STATUS_CHOICES, db_default=Status.READY.value
    )
    priority = models.SmallIntegerField(
        _("priority"), db_default=0, validators=[MinValueValidator(-100), MaxValueValidator(100)]
    )
    attempts = models.PositiveSmallIntegerField(_("attempts"), db_default=0)
    max_attempts = models.PositiveSmallIntegerField(_("max attempts"), db_default=5)
    #: Rises at every claim and never falls: the number of the next attempt row.
    claims = models.PositiveIntegerField(_("claims"), db_default=0)
    crashes = models.PositiveSmallIntegerField(_("crashes"), db_default=0)
    max_crashes = models.PositiveSmallIntegerField(_("max crashes"), db_default=3)
    #: Releases in a row: after twenty a release spends an attempt.
    releases = models.PositiveSmallIntegerField(_("releases"), db_default=0)
    available_at = UtcDateTimeField(_("available at"), db_default=UtcNow())
    expires_at = UtcDateTimeField(_("expires at"), null=True, db_default=None)
    #: Seconds one attempt may run; NULL leaves it to the job type.
    timeout = models.FloatField(_("timeout"), null=True, db_default=None)
    lease_until = UtcDateTimeField(_("lease until"), null=True, db_default=None)
    lease_token = TokenField(_("lease token"), null=True, db_default=None)
    claimed_at = UtcDateTimeField(_("claimed at"), null=True, db_default=None)
    #: The worker of the last claim, `name:host:pid:random`.
    leased_by = models.CharField(_("leased by"), max_length=255, db_default="")
    #: For key_until="finished": the key's digest while the job is live, NULL once it is final.
    live_key = HexField(_("live key"), max_length=64, null=True, db_default=None)
    #: The same digest for good, so that a requeue can win live_key back.
    key_hash = HexField(_("key hash"), max_length=64, null=True, db_default=None)
    last_error = models.CharField(_("last error"), max_length=4000, db_default="")
    fingerprint = HexField(_("fingerprint"), max_length=16, db_default="")
    bury_tries = models.PositiveSmallIntegerField(_("bury tries"), db_default=0)
    signature = HexField(_("signature"), max_length=128, db_default="")
    payload_version = models.PositiveSmallIntegerField(_("payload version"), db_default=1)
    context = models.JSONField(_("context"), db_default=models.Value({}, models.JSONField()))
    result = models.JSONField(_("result"), null=True)
    progress = models.JSONField(_("progress"), null=True)
    checkpoint = models.JSONField(_("checkpoint"), null=True)
    schedule = ExactCharField(_("schedule"), max_length=255, db_default="")
    tick_at = UtcDateTimeField(_("tick at"), null=True, db_default=None)
    #: The id of the last bulk run that changed it; the run's row may be pruned by now.
    bulk_run = models.BigIntegerField(_("bulk run"), null=True, db_default=None)
    created_at = UtcDateTimeField(_("created at"), db_default=UtcNow())
    updated_at = UtcDateTimeField(_("updated at"), db_default=UtcNow())
    finished_at = UtcDateTimeField(_("finished at"), null=True, db_default=None)

    objects = JobQuerySet.as_manager()

    #: False on a job returned by an enqueue whose key was taken.
    created: bool = True
    #: True on a job returned by an enqueue that has given it another payload.
    replaced: bool = False

    class Meta:
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        default_permissions = ("view",)
        permissions = [
            ("requeue_job", "Can requeue jobs"),
            ("cancel_job", "Can cancel jobs"),
            ("view_payload", "Can see sensitive fields of payloads"),
            ("edit_payload", "Can edit payloads of dead letters"),
            ("sign_job", "Can sign edited payloads"),
        ]
        constraints = [
            # The key first: with stale statistics PostgreSQL takes an index that begins with the
            # queue for whatever names a queue, and reads all of its jobs.
            models.UniqueConstraint(
                fields=["idempotency_key", "queue_name"], name="leasequeue_job_key"
            ),
            models.UniqueConstraint(fields=["live_key", "queue_name"], name="leasequeue_job_live"),
        ]
        indexes = [
            # Ascending throughout: MariaDB before 10.8 accepts DESC and ignores it.
            models.Index(
                fields=["queue_name", "status", "priority", "available_at", "id"],
                name="leasequeue_job_claim",
            ),
            # finished_at changes together with the status alone: pruning costs no index of its own.
            models.Index(
                fields=["status", "lease_until", "finished_at", "id"],
                name="leasequeue_job_recover",
            ),
            models.Index(fields=["status", "job_type", "id"], name="leasequeue_job_type"),
        ]

    def __str__(self) -> str:
        return f"{self.job_type} #{self.pk}"


class JobAttempt(models.Model):
    """One run of a job and how it ended. Written in the transaction that ends the run."""

    id = models.BigAutoField(_("id"), primary_key=True)
    # No constraint in the database: a handler's transaction that holds a foreign key lock on the
    # job's row would block renewal and settling.
    job = models.ForeignKey(
        Job,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="history",
        verbose_name=_("job"),
    )
    #: The job's `claims` at that claim.
    number = models.PositiveIntegerField(_("number"))
    token = TokenField(_("token"))
    worker = models.CharField(_("worker"), max_length=255, db_default="")
    started_at = UtcDateTimeField(_("started at"), null=True, db_default=None)
    finished_at = UtcDateTimeField(_("finished at"), db_default=UtcNow())
    outcome = HexField(_("outcome"), max_length=16)
    error_class = models.CharField(_("error class"), max_length=255, db_default="")
    error_text = models.CharField(_("error text"), max_length=4000, db_default="")
    #: "file:line function" texts, outermost first; no values.
    frames = models.JSONField(_("frames"), db_default=models.Value([], models.JSONField()))

    class Meta:
        verbose_name = _("attempt")
        verbose_name_plural = _("attempts")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="leasequeue_attempt_number"),
            models.UniqueConstraint(fields=["job", "token"], name="leasequeue_attempt_token"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of job #{self.job_id}"


class JobEffect(models.Model):
    """An effect of a job that was committed: `context.effect(name)` is True the first time only."""

    id = models.BigAutoField(_("id"), primary_key=True)
    job = models.ForeignKey(
        Job,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="effects",
        verbose_name=_("job"),
    )
    name = ExactCharField(_("name"), max_length=255)
    number = models.PositiveIntegerField(_("number"), db_default=0)
    committed_at = UtcDateTimeField(_("committed at"), db_default=UtcNow())

    class Meta:
        verbose_name = _("effect")
        verbose_name_plural = _("effects")
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["job", "name"], name="leasequeue_effect_name")
        ]

    def __str__(self) -> str:
        return f"{self.name} of job #{self.job_id}"


class Schedule(models.Model):
    """Periodic work: a cron expression or an interval, and what each tick enqueues."""

    id = models.BigAutoField(_("id"), primary_key=True)
    name = ExactCharField(_("name"), max_length=255, unique=True)
    job_type = ExactCharField(_("job type"), max_length=255)
    payload = models.JSONField(_("payload"), db_default=models.Value({}, models.JSONField()))
    #: The version of the payload, as in the jobs.
    payload_version = models.PositiveSmallIntegerField(_("payload version"), db_default=1)
    queue_name = ExactCharField(_("queue name"), max_length=64, db_default="default")
    priority = models.SmallIntegerField(_("priority"), db_default=0)
    key = models.CharField(_("key"), max_length=255, db_default="")
    cron = models.CharField(_("cron"), max_length=255, db_default="")
    #: Seconds between ticks; NULL for a cron schedule.
    every = models.FloatField(_("every"), null=True, db_default=None)
    timezone = models.CharField(_("timezone"), max_length=64, db_default="UTC")
    catch_up = models.CharField(_("catch up"), max_length=16, db_default="latest")
    enabled = models.BooleanField(_("enabled"), db_default=True)
    declared_in_code = models.BooleanField(_("declared in code"), db_default=False)
    last_tick = UtcDateTimeField(_("last tick"), null=True, db_default=None)
    next_tick = UtcDateTimeField(_("next tick"), null=True, db_default=None)
    created_at = UtcDateTimeField(_("created at"), db_default=UtcNow())
    updated_at = UtcDateTimeField(_("updated at"), db_default=UtcNow())

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        indexes = [models.Index(fields=["enabled", "next_tick"], name="leasequeue_schedule_next")]

    def __str__(self) -> str:
        return str(self.name)


class Queue(models.Model):
    """A queue that an operator put on hold. A queue without a row runs."""

    id = models.BigAutoField(_("id"), primary_key=True)
    name = ExactCharField(_("name"), max_length=64, unique=True)
    paused_at = UtcDateTimeField(_("paused at"), null=True, db_default=None)
    paused_by = models.CharField(_("paused by"), max_length=255, db_default="")
    pause_reason = models.CharField(_("pause reason"), max_length=1000, db_default="")

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        default_permissions = ("view",)
        permissions = [("pause_queue", "Can pause and resume queues")]

    def __str__(self) -> str:
        return str(self.name)


class Worker(models.Model):
    """A worker's presence, for operators. Never used to decide who owns a job."""

    id = models.BigAutoField(_("id"), primary_key=True)
    name = models.CharField(_("name"), max_length=255, unique=True)
    host = models.CharField(_("host"), max_length=255, db_default="")
    pid = models.BigIntegerField(_("pid"), db_default=0)
    version = models.CharField(_("version"), max_length=64, db_default="")
    queues = models.JSONField(_("queues"), db_default=models.Value([], models.JSONField()))
    children = models.PositiveIntegerField(_("children"), db_default=0)
    current_jobs = models.JSONField(
        _("current jobs"), db_default=models.Value([], models.JSONField())
    )
    started_at = UtcDateTimeField(_("started at"), db_default=UtcNow())
    seen_at = UtcDateTimeField(_("seen at"), db_default=UtcNow())
    stopped_at = UtcDateTimeField(_("stopped at"), null=True, db_default=None)
    drain_requested_at = UtcDateTimeField(_("drain requested at"), null=True, db_default=None)

    class Meta:
        verbose_name = _("worker")
        verbose_name_plural = _("workers")
        default_permissions = ("view",)
        permissions = [("drain_worker", "Can drain workers")]
        indexes = [models.Index(fields=["seen_at"], name="leasequeue_worker_seen")]

    def __str__(self) -> str:
        return str(self.name)


class DeadGroup(models.Model):
    """What operators noted about the dead letters of one fingerprint."""

    id = models.BigAutoField(_("id"), primary_key=True)
    fingerprint = HexField(_("fingerprint"), max_length=16, unique=True)
    note = models.TextField(_("note"), blank=True, default="", db_default="")
    snoozed_until = UtcDateTimeField(_("snoozed until"), null=True, blank=True, db_default=None)
    updated_at = UtcDateTimeField(_("updated at"), db_default=UtcNow())

    class Meta:
        verbose_name = _("dead letter group")
        verbose_name_plural = _("dead letter groups")
        default_permissions = ("view", "change")

    def __str__(self) -> str:
        return str(self.fingerprint)


class BulkRun(models.Model):
    """One requeue, or cancelling, of many jobs: what it is for, how far it has come, its counts.

    Every chunk of jobs commits together with this row's new place and counts.
    """

    id = models.BigAutoField(_("id"), primary_key=True)
    operation = HexField(_("operation"), max_length=16)
    #: Which jobs: a `JobFilter` as JSON.
    filter = models.JSONField(_("filter"), db_default=models.Value({}, models.JSONField()))
    #: rate, canary, canary_wait, spread, most.
    options = models.JSONField(_("options"), db_default=models.Value({}, models.JSONField()))
    state = HexField(_("state"), max_length=16, db_default="running")
    #: Why it was stopped.
    note = models.CharField(_("note"), max_length=1000, db_default="")
    #: The largest job id at the start; later jobs are not part of the run.
    upper_id = models.BigIntegerField(_("upper id"), db_default=0)
    #: The place: what lies before it, by status, type and id, was dealt with.
    at_status = HexField(_("at status"), max_length=16, db_default="")
    at_type = ExactCharField(_("at type"), max_length=255, db_default="")
    last_id = models.BigIntegerField(_("last id"), db_default=0)
    #: Jobs that were changed, and those that were not, by reason.
    changed = models.BigIntegerField(_("changed"), db_default=0)
    left_out = models.JSONField(_("left out"), db_default=models.Value({}, models.JSONField()))
    #: The ids that went first, and whose outcome is waited for.
    canary = models.JSONField(_("canary"), db_default=models.Value([], models.JSONField()))
    #: When its rate allows the next job; NULL: at once.
    next_at = UtcDateTimeField(_("next at"), null=True, db_default=None)
    by = models.CharField(_("by"), max_length=255, db_default="")
    #: What was confirmed: of two runs with one token the second is never written.
    token = HexField(_("token"), max_length=64, unique=True, null=True, db_default=None)
    started_at = UtcDateTimeField(_("started at"), db_default=UtcNow())
    updated_at = UtcDateTimeField(_("updated at"), db_default=UtcNow())
    finished_at = UtcDateTimeField(_("finished at"), null=True, db_default=None)

    class Meta:
        verbose_name = _("bulk run")
        verbose_name_plural = _("bulk runs")
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.operation} #{self.pk}"
