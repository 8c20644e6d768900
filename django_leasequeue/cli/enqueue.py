"""`leasequeue enqueue`: one job from a terminal or a shell script."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import CommandError

from django_leasequeue.cli.base import DONE, REFUSED, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.cli.values import moment_from
from django_leasequeue.codec import decode_payload
from django_leasequeue.core.enqueue import enqueue
from django_leasequeue.exceptions import RejectedJob
from django_leasequeue.registry import registry

__all__ = ["Enqueue"]

#: Options that go to `enqueue` as they are, with the types of their values.
_OPTIONS: dict[str, tuple[type, str]] = {
    "queue": (str, "the queue; without it the job type's own, else default"),
    "key": (str, "enqueue once: a job that has this key already is named instead"),
    "priority": (int, "-100 to 100, larger first"),
    "delay": (float, "seconds until it may run"),
    "expires": (float, "seconds after which it is cancelled instead of run"),
    "max_attempts": (int, "how often it is tried"),
    "timeout": (float, "seconds that one attempt may run"),
}


class Enqueue(SubCommand):
    """Enqueue a job as the function of that name does."""

    name = "enqueue"
    help = (
        "Enqueues one job and prints its id. The payload is a JSON object, or - for standard "
        "input: a payload on the command line can be seen in the list of processes."
    )
    examples = """
        manage.py leasequeue enqueue report.generate '{"tenant_id": "a", "report_month": "2042-01"}'
        manage.py leasequeue enqueue report.generate --key report:a:2042-02 --delay 3600 --json
        echo '{"tenant_id": "a"}' | manage.py leasequeue enqueue report.generate - --queue reports
    """
    takes_json = True
    codes: ClassVar[Mapping[int, str]] = {
        **SubCommand.codes,
        DONE: "the job is in the queue: it was created, or its key had been taken",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("job_type", metavar="TYPE", help="the job type's name")
        add("payload", metavar="JSON", nargs="?", default="{}", help="the payload, {} without it")
        for name, (kind, text) in _OPTIONS.items():
            add(f"--{name.replace('_', '-')}", type=kind, help=text)
        add("--run-after", type=moment_from, help="a time instead of --delay, with its zone")
        add("--key-until", choices=("forever", "finished"), help="how long the key is taken")
        add(
            "--on-conflict",
            choices=("return", "replace", "raise"),
            default="return",
            help="what to do when the key is taken",
        )

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        names = (*_OPTIONS, "run_after", "key_until", "on_conflict")
        given: Any = {name: options[name] for name in names if options[name] is not None}
        payload = _payload(options["payload"])
        try:
            job = enqueue(options["job_type"], payload, using=options["database"], **given)
        except TypeError as error:  # options that exclude each other
            raise CommandError(str(error), returncode=REFUSED) from None
        if registry.get(options["job_type"]) is None:
            out.warn("No handler here has this type: only a worker that has one can run the job.")
        if options["json"]:
            out.json({"id": job.pk, "created": job.created})
        else:
            out.line(f"{'created' if job.created else 'existing'} {job.pk}")
        return DONE


def _payload(given: str) -> dict[str, Any]:
    text = sys.stdin.buffer.read() if given == "-" else given
    try:
        return decode_payload(text)
    except RejectedJob as error:
        raise CommandError(f"{error}.", returncode=REFUSED) from None
