"""The command line: one parser for each sub-command, filled when its sub-command is the one."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.core.management.base import CommandError, CommandParser

from django_leasequeue.cli.base import REFUSED, SubCommand
from django_leasequeue.cli.table import TABLE, load

__all__ = ["SubParser", "add_subcommands"]


class SubParser(CommandParser):
    """The parser of one sub-command; before it parses it knows no more than its name."""

    def __init__(self, *, subcommand: str = "", at_once: bool = True, **kwargs: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)
        self._waiting = subcommand
        if at_once:
            self._fill()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as every parser does, with all options of the sub-command."""
        self._fill()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2, from call_command too."""
        if self.called_from_command_line:
            super().error(message)
        raise CommandError(f"Error: {message}", returncode=REFUSED)

    def _fill(self) -> None:
        if not self._waiting:
            return
        command, self._waiting = load(self._waiting), ""
        self.description = command.help
        self.epilog = _epilog(command)
        command.add_arguments(self)
        if command.takes_json:
            self.add_argument("--json", action="store_true", help="answer in JSON, for programs")
        if command.takes_database:
            self.add_argument("--database", metavar="ALIAS", help="alias of the queue's database")


def add_subcommands(parser: ArgumentParser, *, at_once: bool) -> None:
    """Add a parser for each sub-command; unless `at_once`, only the one used gets its options."""
    parsers = parser.add_subparsers(
        dest="subcommand", required=True, metavar="SUBCOMMAND", parser_class=SubParser
    )
    called = getattr(parser, "called_from_command_line", None)
    for name, listed in TABLE.items():
        parsers.add_parser(
            name,
            help=listed.summary,
            called_from_command_line=called,
            subcommand=name,
            at_once=at_once,
        )


def _epilog(command: SubCommand) -> str:
    codes = [f"  {code}  {meaning}" for code, meaning in sorted(command.codes.items())]
    parts = ["exit codes:", *codes]
    if command.examples:
        lines = [line.strip() for line in command.examples.strip().splitlines()]
        parts += ["", "examples:", *(f"  {line}" for line in lines)]
    return "\n".join(parts)
