"""The table of features names tests that exist, and every test of this folder is in it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = (TESTS / "field" / "FEATURES.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!feature |---)(.+?) \| (.+) \|$", TABLE, re.MULTILINE)
LATER = "not in this version"


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def named(tests: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py::test_\w+)`", tests)


@pytest.mark.parametrize(("feature", "tests"), ROWS)
def test_the_feature_has_a_test(feature, tests):
    assert named(tests) or tests == LATER
    assert re.sub(r"`[^`]*`|, ", "", tests) in ("", LATER)
    for name in named(tests):
        file, _, function = name.partition("::")
        assert function in names_in(TESTS / file), name


def test_every_feature_test_is_in_the_table():
    here = Path(__file__)
    written = {
        f"features/{path.name}::{name}"
        for path in here.parent.glob("test_*.py")
        if path != here
        for name in names_in(path)
        if name.startswith("test_")
    }
    assert written - set(named(TABLE)) == set()


def test_each_seed_has_its_features():
    assert re.findall(r"^## (S\d)$", TABLE, re.MULTILINE) == ["S1", "S2", "S3"]
    assert len(ROWS) == len({feature for feature, _ in ROWS})
    assert [feature for feature, tests in ROWS if tests == LATER] == []
