"""`leasequeue jobs`: a list of jobs, or some of them with all that is known and their attempts."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.core.management.base import CommandError
from django.db import connections

from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.jobview import Shown, attempts_of, load, print_job
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.states import STATES
from django_leasequeue.cli.values import job_id, moment_or_age, name_of, number_from
from django_leasequeue.codec import clean_text, digest_key
from django_leasequeue.core.clock import read_now
from django_leasequeue.models import Job
from django_leasequeue.querysets import JobQuerySet
from django_leasequeue.statuses import Status

__all__ = ["ShowJobs"]

_TITLES = ("id", "type", "queue", "state", "attempts", "available", "error")
_FILTERS = ("queue", "type", "status", "key", "since")


class ShowJobs(SubCommand):
    """Newest first. It only reads."""

    name = "jobs"
    help = (
        "Lists jobs, newest first; with ids, shows each of them with its attempts. Payloads are "
        "shown with --payload only, and without what their job type declares as sensitive."
    )
    examples = """
        manage.py leasequeue jobs --status dead --limit 20
        manage.py leasequeue jobs --queue default --type report.generate --since 2h --json
        manage.py leasequeue jobs 1 --payload
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "they were shown; a list may be empty",
        PROBLEM: "an id that no job has; or the database cannot be reached",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("ids", nargs="*", type=job_id, metavar="ID", help="show these jobs and their attempts")
        add("--queue", type=name_of(64), help="only jobs of this queue")
        add("--type", type=name_of(255), help="only jobs of this type")
        add("--status", choices=list(STATES), help="only jobs in this state")
        add("--key", help="only jobs that were enqueued with this key")
        add("--since", type=moment_or_age, help="only jobs made since then: 2h, 7d, or a time")
        add("--limit", type=number_from(1, 10_000), default=50, help="show so many jobs")
        add("--payload", action="store_true", help="show payloads, sensitive fields masked")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        if options["ids"]:
            return _show(options, out)
        limit = options["limit"]
        now = read_now(connections[options["database"]])
        rows = load(_matching(options, now), limit + 1, payload=options["payload"])
        shown = [Shown(job, now, payload=options["payload"]) for job in rows[:limit]]
        if options["json"]:
            out.json({"jobs": [one.as_json() for one in shown], "more": len(rows) > limit})
            return DONE
        titles = (*_TITLES, "payload") if options["payload"] else _TITLES
        out.table(titles, (one.row() for one in shown))
        if len(rows) > limit:
            out.warn(f"More jobs match; these are the newest {limit}.")
        return DONE


def _show(options: Mapping[str, Any], out: Output) -> int:
    """Show jobs by their ids, in the order given."""
    if any(options[name] is not None for name in _FILTERS):
        raise CommandError("Give ids, or conditions, not both.", returncode=REFUSED)
    alias, ids = options["database"], list(dict.fromkeys(options["ids"]))
    now = read_now(connections[alias])
    rows = load(Job.objects.using(alias).filter(pk__in=ids), len(ids), payload=options["payload"])
    found = {job.pk: Shown(job, now, payload=options["payload"]) for job in rows}
    shown = [(found[one], attempts_of(alias, one)) for one in ids if one in found]
    missing = [one for one in ids if one not in found]
    if options["json"]:
        jobs = [{**job.as_json(), "history": history} for job, history in shown]
        out.json({"jobs": jobs, "missing": missing})
    else:
        for job, history in shown:
            print_job(out, job, history)
    for one in missing:
        out.warn(f"There is no job {one}.")
    return PROBLEM if missing else DONE


def _matching(options: Mapping[str, Any], now: datetime) -> JobQuerySet:
    jobs = Job.objects.using(options["database"]).order_by("-pk")
    if options["queue"] is not None:
        jobs = jobs.filter(queue_name=options["queue"])
    if options["status"] is not None:
        jobs = STATES[options["status"]](jobs)
    if options["type"] is not None:
        jobs = jobs.filter(job_type=options["type"])
        if options["status"] is None:
            # The index on the type begins with the status: name them all, and it serves.
            jobs = jobs.filter(status__in=[status.value for status in Status])
    if (since := options["since"]) is not None:
        jobs = jobs.filter(created_at__gte=_moment(since, now))
    return jobs if options["key"] is None else _with_key(jobs, options["key"])


def _moment(since: datetime | timedelta, now: datetime) -> datetime:
    if isinstance(since, datetime):
        return since
    try:
        return now - since
    except OverflowError:
        raise CommandError("--since: that is before all time.", returncode=REFUSED) from None


def _with_key(jobs: JobQuerySet, key: str) -> JobQuerySet:
    """Return those with the key, by the unique indexes; a final job's live key is gone."""
    if not key or clean_text(key, len(key)) != key:
        raise CommandError("--key: that can be no job's key.", returncode=REFUSED)
    digest = digest_key(key)
    ids: set[int] = set()
    for column in ("idempotency_key", "live_key"):
        found: Iterable[int] = jobs.filter((column, digest)).values_list("pk", flat=True)[:1000]
        ids.update(found)
    return jobs.filter(pk__in=ids)
