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
_EVENT = re.compile(r"`((?:job|worker|claim|database|leases|log)_\w+)`")
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


def test_it_has_rows():
    assert len(ROWS) > 25


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_says_all_and_its_tests_are_there(row):
    assert len(row) == 5 and all(row)
    named = _TEST.findall(row[4])
    assert named
    assert missing(named) == []


def test_what_is_missing_is_seen():
    assert missing([("tests/test_nowhere.py", "")])
    assert missing([("tests/test_failures_page.py", "test_never_written")])


def test_the_events_are_those_of_the_log():
    known = set(_EVENT.findall(markdown.read("log-events.md")))
    assert set(_EVENT.findall(PAGE)) - known == set()
