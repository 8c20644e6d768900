"""Fixtures of the sub-commands' tests: one call, with its exit code and what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError


@dataclass(frozen=True)
class Ended:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


@pytest.fixture
def leasequeue() -> Callable[..., Ended]:
    """Run `leasequeue ARGUMENTS` in this process."""

    def run(*arguments: object) -> Ended:
        out, err = StringIO(), StringIO()
        code = 0
        try:
            call_command("leasequeue", *map(str, arguments), stdout=out, stderr=err)
        except CommandError as error:
            code = error.returncode
            err.write(f"{error}\n")
        except SystemExit as end:
            code = int(end.code or 0)
        return Ended(code, out.getvalue(), err.getvalue())

    return run
