"""The page of mapping names places and tests that exist, and every test of this folder."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests import markdown
from tests.markdown import ROOT

TESTS = Path(__file__).parents[1]
PAGE = markdown.read("mapping.md")
ROWS = re.findall(r"^\| (?!S\d \||---)(.+?) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)

#: A link to a page, or a name in the code.
_PLACE = re.compile(r"\[[^\]]+\]\([^)\s]+\)|`[^`]+`")
_FILE = re.compile(r"`((?:django_leasequeue|testproject|tests)/[\w/]+\.py)`")


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def named(tests: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py::test_\w+)`", tests)


@pytest.mark.parametrize(("feature", "here", "tests"), ROWS)
def test_the_feature_has_a_test(feature, here, tests):
    assert is_place(here)
    assert named(tests)
    assert re.sub(r"`[^`]*`|, ", "", tests) == ""
    for name in named(tests):
        file, _, function = name.partition("::")
        assert function in names_in(TESTS / file), name


def is_place(here: str) -> bool:
    """Tell whether a cell says where something lives; links themselves are test_docs.py's."""
    files = [ROOT / file for file in _FILE.findall(here)]
    return bool(_PLACE.search(here)) and all(file.is_file() for file in files)


@pytest.mark.parametrize(
    ("here", "says"),
    [
        ("the same", False),
        ("**≠** at least once", False),
        ("`tests/features/nowhere.py`", False),
        ("`tests/features/test_hooks.py`", True),
        ("**≠** [0, 1](worker.md#exit-codes); 2 for what was refused", True),
        ("`--max-jobs` is left out", True),
    ],
)
def test_a_cell_that_names_no_place_is_seen(here, says):
    assert is_place(here) is says


def test_every_feature_test_is_in_the_table():
    here = Path(__file__)
    written = {
        f"features/{path.name}::{name}"
        for path in here.parent.glob("test_*.py")
        if path != here
        for name in names_in(path)
        if name.startswith("test_")
    }
    assert written - set(named(PAGE)) == set()


def test_each_seed_has_its_features():
    assert re.findall(r"^## (S\d)$", PAGE, re.MULTILINE) == ["S1", "S2", "S3"]
    features = [feature for feature, _, _ in ROWS]
    assert len(features) == len(set(features)) > 100


def test_what_is_different_on_purpose_has_its_reason():
    """As many marks as reasons; that each mark has its own is for readers to judge."""
    for seed in ("S1", "S2", "S3"):
        marked = markdown.section(PAGE, seed).count("**≠** ")
        reasons = markdown.table(markdown.read("differences.md"), f"From {seed}")
        assert marked == len(reasons) > 0, seed
