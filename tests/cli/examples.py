"""The example lines in the sub-commands' --help, as what a test can run."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from django_leasequeue.cli.table import TABLE, load


class Example(NamedTuple):
    """A line that runs `manage.py leasequeue`; `stdin` is what an `echo` before it says."""

    subcommand: str
    line: str

    @property
    def stdin(self) -> str:
        before, bar, _ = self.line.partition(" | ")
        if not bar:
            return ""
        echo, *words = shlex.split(before)
        assert echo == "echo", self.line
        return " ".join(words) + "\n"

    @property
    def arguments(self) -> list[str]:
        words = shlex.split(self.line.rpartition(" | ")[2])
        assert words[:3] == ["manage.py", "leasequeue", self.subcommand], self.line
        return words[2:]


def examples() -> list[Example]:
    """Return every example of every sub-command."""
    return [
        Example(name, line.strip())
        for name in TABLE
        for line in load(name).examples.strip().splitlines()
    ]
