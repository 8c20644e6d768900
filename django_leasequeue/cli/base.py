"""What a sub-command of `manage.py leasequeue` is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django_leasequeue.cli.output import Output

__all__ = ["DONE", "PROBLEM", "REFUSED", "SubCommand"]

#: Exit codes. argparse has 2 for a wrong command line as well.
DONE, PROBLEM, REFUSED = 0, 1, 2


class SubCommand(ABC):
    """One sub-command; it is made and run once.

    Errors: raise CommandError with `returncode=REFUSED` for input that is refused, before anything
    is written. The queue's own errors and the database's are explained by the command in one line.
    """

    #: The word on the command line, as in the table.
    name: ClassVar[str]
    #: What it does, shown at the top of its --help.
    help: ClassVar[str]
    #: Command lines that work as they are, shown at the end of its --help, one a line.
    examples: ClassVar[str] = ""
    #: Whether it has --json: one JSON document on stdout, and nothing else there.
    takes_json: ClassVar[bool] = False
    #: Whether it has --database; `options["database"]` is an alias of DATABASES then.
    takes_database: ClassVar[bool] = True
    #: What its exit codes mean; Ctrl-C is 130 and a reader that went away 141 for all of them.
    codes: ClassVar[Mapping[int, str]] = {
        DONE: "it was done",
        PROBLEM: "the database cannot be reached or refuses",
        REFUSED: "the command line or its input was refused; nothing was written",
    }

    @abstractmethod
    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add its own options; --database and --json are added for it."""

    @abstractmethod
    def run(self, options: Mapping[str, Any], out: Output) -> int:
        """Do it and return the exit code."""
