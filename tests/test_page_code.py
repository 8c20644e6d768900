"""The code of the pages: Python blocks run, settings are accepted, command lines are understood.

Names that a block takes from the reader's project (`Order`, `bank`, `shop.jobs`) are stand-ins.
What a block defines is not called: that is for the tests of the feature. Under
`<!-- not run: why -->` a block is only compiled, in test_docs.py.
"""

from __future__ import annotations

import builtins
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError

from django_leasequeue import job
from django_leasequeue.cli.parsing import SubParser
from django_leasequeue.cli.table import TABLE
from django_leasequeue.conf import get_conf
from django_leasequeue.registry import registry
from tests import markdown
from tests.markdown import ROOT, Block

#: Packages of the reader's that the pages import from; celery stands on the page that leaves it.
PACKAGES = ("shop", "celery")
#: The tutorial's and the declarations' code is run by tests of its own.
ELSEWHERE = {"tutorial.md", "declarations.md"}


def blocks(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{page.relative_to(ROOT)}:{block.line}")
        for page in markdown.pages()
        for block in markdown.blocks(page.read_text(encoding="utf-8"), *languages)
        if page.name not in ELSEWHERE and not block.before.startswith("<!-- not run")
    ]


class Names(dict[str, Any]):
    """The names of a block; one that it does not define is a stand-in."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return MagicMock(name=name)


class Project(ModuleType):
    """A module of the reader's project: it has whatever it is asked for."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=name)


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the modules that the pages import from, their environment, and no job types yet."""
    for name in sorted({found for page in markdown.pages() for found in imported(page)}):
        for part in parents(name):
            monkeypatch.setitem(sys.modules, part, Project(part))
    monkeypatch.setenv("LEASEQUEUE_KEY", "a key of sixteen characters")
    monkeypatch.setattr(registry, "_entries", {})


def imported(page: Path) -> list[str]:
    names = "|".join(PACKAGES)
    return re.findall(rf"^ *from ((?:{names})[\w.]*) import", page.read_text("utf-8"), re.MULTILINE)


def parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_block_runs(block: Block, project: None, connection: Any, settings: Any) -> None:
    if "django.tasks" in block.code and not find_spec("django.tasks"):
        pytest.skip("this Django has no django.tasks")
    names = Names(__name__="example", __builtins__=builtins)
    exec(compile(block.code, f"line {block.line}", "exec"), names)
    if "LEASEQUEUE" in names:
        settings.LEASEQUEUE = {**settings.LEASEQUEUE, **names["LEASEQUEUE"]}
        get_conf()


def test_a_block_that_is_wrong_is_seen(project: None, connection: Any) -> None:
    with pytest.raises(ImproperlyConfigured):
        exec("@job(max_attempts=0)\ndef f(): ...", Names(job=job, __name__="example"))


COMMAND = re.compile(r"manage\.py (?:leasequeue (?P<name>[\w-]+)|runworker)(?P<rest>[^|&;]*)")


def commands(text: str) -> list[tuple[str, list[str]]]:
    joined = text.replace("\\\n", " ")
    return [
        (found["name"] or "worker", shlex.split(found["rest"], comments=True))
        for line in joined.splitlines()
        for found in COMMAND.finditer(line)
    ]


@pytest.mark.parametrize("block", blocks("bash", "sh", "console"))
def test_a_command_line_is_understood(block: Block) -> None:
    for name, words in commands(block.code):
        assert name in TABLE
        SubParser(subcommand=name).parse_args(words)


def test_command_lines_are_found() -> None:
    text = "python manage.py runworker --drain &\nmanage.py leasequeue jobs \\\n  1 --json | head"
    assert commands(text) == [("worker", ["--drain"]), ("jobs", ["1", "--json"])]
    code = "\n".join(item.values[0].code for item in blocks("bash", "sh", "console"))
    assert {name for name, _ in commands(code)} == set(TABLE)


def test_an_option_that_does_not_exist_is_seen() -> None:
    ((name, words),) = commands("manage.py leasequeue jobs --status dead --newest 3")
    with pytest.raises(CommandError):
        SubParser(subcommand=name).parse_args(words)
