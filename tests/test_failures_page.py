"""docs/failures.md: each row has its tests, and they are there."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests import markdown
from tests.markdown import ROOT

PAGE = markdown.read("failures.md")
_ROW = re.compile(r"^\| (?!when \|)(?P<cells>.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")
_EVENT = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")
#: Other names of that form: an outcome, an option, a callback.
NO_EVENTS = {"timed_out", "max_crashes", "on_commit"}
LOGGED = set(markdown.table(markdown.read("log-events.md"), "List"))
ROWS = [match["cells"].split(" | ") for match in _ROW.finditer(PAGE)]


@cache
def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def missing(tests: list[tuple[str, str]]) -> list[str]:
    """Return the named tests that are not there."""
    return [
        f"{file}::{name}"
        for file, name in tests
        if not (ROOT / file).is_file() or (name and name not in functions(file))
    ]


def unlogged(text: str) -> set[str]:
    """Return the events that a text names and no worker logs."""
    return set(_EVENT.findall(text)) - LOGGED - NO_EVENTS


def test_it_has_rows():
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_says_all_and_its_tests_are_there(row):
    assert len(row) == 5 and all(row)
    named = _TEST.findall(row[4])
    assert named
    assert missing(named) == []


def test_what_is_missing_is_seen():
    assert missing([("tests/test_nowhere.py", "")])
    assert missing([("tests/test_failures_page.py", "test_never_written")])
    assert unlogged("`burial_failed`, `hook_failed` of the log, `status`") == {"hook_failed"}


def test_the_events_are_those_of_the_log():
    assert unlogged(PAGE) == set()
    assert set(_EVENT.findall(PAGE)) >= NO_EVENTS
    assert set() == NO_EVENTS & LOGGED
