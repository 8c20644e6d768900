"""`manage.py leasequeue …`: the operator's command, made of the sub-commands in `cli`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from django_leasequeue.cli.output import Output
from django_leasequeue.cli.parsing import add_subcommands
from django_leasequeue.cli.running import run_subcommand

#: Exit codes as a shell has them for SIGINT and SIGPIPE.
INTERRUPTED, NO_READER = 130, 141


class Command(BaseCommand):
    help = "Operates the job queue; 'leasequeue SUBCOMMAND --help' has each one's options."

    def add_arguments(self, parser: ArgumentParser) -> None:
        # call_command looks at the options of every sub-command.
        add_subcommands(parser, at_once=not self._is_a_process())

    def check(self, *args: Any, **kwargs: Any) -> None:
        # Django 6.1 connects to every database for this; a worker waits for one that is away.
        super().check(*args, **{**kwargs, "databases": []})

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = run_subcommand(options, Output(self.stdout, self.stderr))
        except KeyboardInterrupt:
            if not self._is_a_process():
                raise
            code = INTERRUPTED
        except BrokenPipeError:
            if not self._is_a_process():
                raise
            # What is still buffered goes nowhere, instead of failing once more at the exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = NO_READER
        if code:
            sys.exit(code)

    def _is_a_process(self) -> bool:
        """Tell whether this is manage.py itself, not call_command in somebody's program."""
        return bool(getattr(self, "_called_from_command_line", False))
