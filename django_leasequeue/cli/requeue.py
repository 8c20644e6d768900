"""`leasequeue requeue`: make dead or cancelled jobs ready again, few or very many of them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError

from django_leasequeue.cli.account import account
from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.bulkview import as_document, list_runs, reasons
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.values import job_id, moment_from, name_of, number_from, seconds_from
from django_leasequeue.core.bulk import cancel_run, go_on, requeue_many, start
from django_leasequeue.core.bulk_chunk import Chunk
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import CHUNK, Options, State
from django_leasequeue.models import BulkRun

__all__ = ["Requeue"]

#: More jobs than this want a yes.
_MOST_UNASKED = 100
_CONDITIONS = {
    "queue": "queue",
    "type": "job_type",
    "group": "fingerprint",
    "died_after": "died_after",
    "died_before": "died_before",
}


class Requeue(SubCommand):
    """Start a bulk run, carry one on, list them, end one."""

    name = "requeue"
    help = (
        "Makes dead or cancelled jobs ready again, by id or by condition, in short transactions "
        "that hold up no worker. It can be stopped and carried on: no run requeues a job twice."
    )
    examples = """
        manage.py leasequeue requeue 1 2
        manage.py leasequeue requeue --queue default --type report.generate --dry-run
        manage.py leasequeue requeue --all --rate 50 --spread 60 --yes
        manage.py leasequeue requeue --group 0123456789abcdef --canary 5 --canary-wait 1 --yes
        manage.py leasequeue requeue --list --json
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "every job that was asked for was, or would be, requeued",
        PROBLEM: "some were left out, or the run was stopped or cancelled; or no database",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("ids", nargs="*", type=job_id, metavar="ID", help="requeue these jobs")
        add("--queue", type=name_of(64), help="jobs of this queue")
        add("--type", type=name_of(255), help="jobs of this type")
        add("--status", choices=["dead", "cancelled", "both"], help="dead ones without it")
        add("--group", type=name_of(16), metavar="FINGERPRINT", help="dead letters of one error")
        add("--died-after", type=moment_from, metavar="TIME", help="not those before this time")
        add("--died-before", type=moment_from, metavar="TIME", help="only those before this time")
        add("--all", action="store_true", help="every dead letter")
        add("--rate", type=seconds_from(0.001), metavar="N", help="so many jobs a second at most")
        add("--canary", type=number_from(1, CHUNK), metavar="N", default=0, help=_CANARY)
        add("--canary-wait", type=seconds_from(0), metavar="S", default=300.0, help=_WAIT)
        add("--spread", type=seconds_from(0), metavar="S", default=0.0, help=_SPREAD)
        add("--dry-run", action="store_true", help="count, and write nothing")
        add("--yes", action="store_true", help=f"do not ask, even for more than {_MOST_UNASKED}")
        runs = parser.add_mutually_exclusive_group()
        runs.add_argument("--resume", type=job_id, metavar="RUN", help="carry a run on")
        runs.add_argument("--cancel", type=job_id, metavar="RUN", help="end a run for good")
        runs.add_argument("--list", action="store_true", help="show the newest runs")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        alias = options["database"]
        if options["list"]:
            list_runs(alias, out, as_json=options["json"])
            return DONE
        if options["cancel"] is not None:
            return _cancel(options, out)
        if options["resume"] is not None:
            row = BulkRun.objects.using(alias).filter(pk=options["resume"]).first()
            return _carry_on(options["resume"], None, row.changed if row else 0, options, out)
        return _start(options, out)


_CANARY = "so many go first; the others follow when all of these are done"
_WAIT = "wait so many seconds for those that go first"
_SPREAD = "let them become available over so many seconds"


def _start(options: Mapping[str, Any], out: Output) -> int:
    """Count, ask, and begin a run; or only count."""
    alias, wanted = options["database"], _wanted(options)
    how = Options(options["rate"], options["canary"], options["canary_wait"], options["spread"])
    how.check()
    would = requeue_many(wanted, dry_run=True, using=alias)
    if options["dry_run"]:
        return _tell_dry(would, options, out)
    _confirm(would.changed, options)
    row = start("requeue", wanted, how, by=account(), using=alias)
    return _carry_on(row.pk, would.changed, 0, options, out)


def _wanted(options: Mapping[str, Any]) -> JobFilter:
    given = {name: options[key] for key, name in _CONDITIONS.items() if options[key] is not None}
    if not (options["ids"] or given or options["all"] or options["status"]):
        raise CommandError(
            "Say which jobs: ids, conditions such as --type, or --all.", returncode=REFUSED
        )
    if options["all"] and (given or options["ids"]):
        raise CommandError("--all has no other conditions.", returncode=REFUSED)
    statuses = {None: ["dead"], "both": ["dead", "cancelled"]}.get(
        options["status"], [options["status"]]
    )
    if options["ids"]:
        # Whoever names a job means that one, however it came to its end.
        statuses = statuses if options["status"] else ["dead", "cancelled"]
        return JobFilter(ids=options["ids"], statuses=statuses, **given)
    return JobFilter(statuses=statuses, **given)


def _confirm(count: int, options: Mapping[str, Any]) -> None:
    if options["yes"] or count <= _MOST_UNASKED:
        return
    if sys.stdin is not None and sys.stdin.isatty() and not options["json"]:
        sys.stderr.write(f"Requeue {count} jobs? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in {"y", "yes"}:
            return
        raise CommandError("Nothing was requeued.", returncode=REFUSED)
    raise CommandError(
        f"{count} jobs match: give --yes to requeue them, or --dry-run.", returncode=REFUSED
    )


def _carry_on(
    run_id: int, total: int | None, done: int, options: Mapping[str, Any], out: Output
) -> int:
    """Carry a run on and tell what became of it; an interrupted one says how to go on."""
    try:
        with out.progress(total, f"bulk run {run_id}") as progress:
            progress.advance(done)

            def told(chunk: Chunk) -> None:
                progress.advance(len(chunk.changed))

            row = go_on(run_id, told=told, using=options["database"])
    except KeyboardInterrupt:
        out.warn(f"Interrupted; to go on: manage.py leasequeue requeue --resume {run_id}")
        raise
    if options["json"]:
        out.json(as_document(row))
    else:
        out.line(f"{row.changed} jobs were requeued{_but(row)}.")
        if row.state == State.STOPPED:
            out.line(f"Run {run_id} was stopped: {row.note}.")
            out.line(f"To look again and go on: manage.py leasequeue requeue --resume {run_id}")
        elif row.state != State.FINISHED:
            out.line(f"Run {run_id} was {row.state} by somebody.")
    return PROBLEM if row.left_out or row.state != State.FINISHED else DONE


def _tell_dry(row: BulkRun, options: Mapping[str, Any], out: Output) -> int:
    if options["json"]:
        out.json({"dry_run": True, "changed": row.changed, "left_out": row.left_out})
    else:
        out.line(f"{row.changed} jobs would be requeued{_but(row)}.")
    return PROBLEM if row.left_out else DONE


def _but(row: BulkRun) -> str:
    return f"; left out: {reasons(row.left_out)}" if row.left_out else ""


def _cancel(options: Mapping[str, Any], out: Output) -> int:
    run_id = options["cancel"]
    changed = cancel_run(run_id, using=options["database"])
    if not changed and not BulkRun.objects.using(options["database"]).filter(pk=run_id).exists():
        raise CommandError(f"There is no bulk run {run_id}.", returncode=REFUSED)
    if options["json"]:
        out.json({"run": run_id, "changed": changed})
    else:
        out.line(f"run {run_id}: {'cancelled' if changed else 'it was over'}")
    return DONE
