"""`leasequeue recover`: take back expired leases now, as any running worker does."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django_leasequeue.cli.base import DONE, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.core.operate import recover

__all__ = ["Recover"]


class Recover(SubCommand):
    """Recover, and tell how many jobs that were."""

    name = "recover"
    help = (
        "Takes back every job whose lease ran out: it is ready again, or dead when its attempts or "
        "crashes are used up. Workers do so all the time; this is for when none runs."
    )
    examples = """
        manage.py leasequeue recover
    """
    takes_json = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add none."""

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        number = recover(using=options["database"])
        if options["json"]:
            out.json({"recovered": number})
        else:
            out.line(f"recovered: {number}")
        return DONE
