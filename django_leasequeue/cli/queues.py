"""`leasequeue pause` and `leasequeue resume`: put a queue on hold, and let it run again."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django_leasequeue.cli.account import account
from django_leasequeue.cli.base import DONE, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.values import name_of
from django_leasequeue.core.operate import pause, resume
from django_leasequeue.models import Job

__all__ = ["Pause", "Resume"]


class _OfAQueue(SubCommand):
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "the queue is as asked for, whether it was so before or not",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("queue", type=name_of(64), metavar="QUEUE", help="the queue's name")


class Pause(_OfAQueue):
    """Put a queue on hold; say so when it was already."""

    name = "pause"
    help = (
        "Puts a queue on hold: within a second no worker claims from it. Running jobs finish, and "
        "enqueues go on."
    )
    examples = """
        manage.py leasequeue pause default --reason "the mail server is down"
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", default="", help="why, for those who find it paused")
        parser.add_argument("--by", help="who; without it the name of the account")

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        queue, alias = options["queue"], options["database"]
        by = account() if options["by"] is None else options["by"]
        changed = pause(queue, by=by, reason=options["reason"], using=alias)
        if not Job.objects.using(alias).filter(queue_name=queue)[:1].exists():
            out.warn("No job is in this queue: is its name right?")
        if options["json"]:
            out.json({"queue": queue, "changed": changed})
        else:
            out.line(f"{queue}: {'paused' if changed else 'was paused already'}")
        return DONE


class Resume(_OfAQueue):
    """Let a queue run again; say so when it was not on hold."""

    name = "resume"
    help = "Lets a paused queue run again, within a second."
    examples = """
        manage.py leasequeue resume default
    """

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        changed = resume(options["queue"], using=options["database"])
        if options["json"]:
            out.json({"queue": options["queue"], "changed": changed})
        else:
            out.line(f"{options['queue']}: {'resumed' if changed else 'was not paused'}")
        return DONE
