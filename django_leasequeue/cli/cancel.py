"""`leasequeue cancel`: end jobs that are not to run, running ones too."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django_leasequeue.cli.base import DONE, PROBLEM, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.values import job_id
from django_leasequeue.core.operate import cancel
from django_leasequeue.models import Job

__all__ = ["Cancel"]


class Cancel(SubCommand):
    """Cancel jobs by their ids and tell what became of each."""

    name = "cancel"
    help = (
        "Cancels jobs that are ready, parked, dead or running. A running one's attempt is "
        "recorded as cancelled, and its handler is interrupted within seconds."
    )
    examples = """
        manage.py leasequeue cancel 1
        manage.py leasequeue cancel 1 2 3 --json
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "all of them are cancelled now",
        PROBLEM: "some are not: done, unknown, or held by a transaction; or no database",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("ids", nargs="+", type=job_id, metavar="ID", help="the jobs' ids")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        alias, ids = options["database"], sorted(set(options["ids"]))
        changed = set(cancel(ids, using=alias))
        statuses = dict(Job.objects.using(alias).filter(pk__in=ids).values_list("pk", "status"))
        left = {one: statuses[one] for one in ids if one in statuses and one not in changed}
        missing = [one for one in ids if one not in statuses]
        if options["json"]:
            unchanged = [{"id": one, "status": status} for one, status in left.items()]
            out.json({"cancelled": sorted(changed), "unchanged": unchanged, "missing": missing})
        else:
            for one in ids:
                out.line(f"{one}: {_said(one, changed, left)}")
        wrong = missing or any(status != "cancelled" for status in left.values())
        return PROBLEM if wrong else DONE


def _said(one: int, changed: set[int], left: Mapping[int, str]) -> str:
    if one in changed:
        return "cancelled"
    return f"left alone, it is {left[one]}" if one in left else "there is no such job"
