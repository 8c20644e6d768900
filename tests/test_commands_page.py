"""docs/commands.md against the sub-commands: what it lists exists, and what exists is listed."""

from __future__ import annotations

import re
from argparse import Action

import pytest

from django_leasequeue.cli.parsing import SubParser
from django_leasequeue.cli.table import TABLE, load
from django_leasequeue.core.gauges import CAP
from tests import markdown

PAGE = markdown.read("commands.md")
#: Described on pages of their own, which other tests compare.
ELSEWHERE = {"worker": "worker.md#options", "sign": "signing.md#leasequeue-sign"}
#: Described once for all.
SHARED = {"--json", "--database"}


def options_of(name: str) -> list[Action]:
    return SubParser(subcommand=name, add_help=False)._actions


def written(action: Action) -> str:
    return action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)


def test_the_table_of_exit_codes():
    rows = markdown.table(PAGE, "Exit codes")
    listed = {re.sub(r"^\[(.+)\]\((.+)\)$", r"\1 \2", cell): row for cell, row in rows.items()}
    assert list(listed) == [f"{name} {ELSEWHERE.get(name, '#' + name)}" for name in TABLE]
    for name, row in zip(TABLE, listed.values(), strict=True):
        codes = load(name).codes
        assert row == {"0": codes[0], "1": codes[1]}, name
        assert set(codes) == {0, 1, 2}, name


def test_what_all_sub_commands_share():
    assert set(markdown.table(PAGE, "Options of all")) == SHARED
    for name in TABLE:
        options = {written(action) for action in options_of(name)}
        assert ("--database" in options) and (("--json" in options) or name == "worker")


def test_every_sub_command_has_a_section_in_the_order_of_the_table():
    headings = re.findall(r"^## `(.+)`$", PAGE, re.MULTILINE)
    assert headings == [name for name in TABLE if name not in ELSEWHERE]


@pytest.mark.parametrize("name", [name for name in TABLE if name not in ELSEWHERE])
def test_a_section_lists_the_options_and_the_examples(name):
    own = [written(action) for action in options_of(name) if written(action) not in SHARED]
    text = markdown.section(PAGE, f"`{name}`")
    assert re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE) == own
    (block,) = markdown.blocks(text, "sh")
    assert block.code.splitlines() == [
        line.strip() for line in load(name).examples.strip().splitlines()
    ]


def test_where_counts_end():
    assert f"Counts end at {CAP:_}.".replace("_", " ") in PAGE


@pytest.mark.parametrize("name", TABLE)
def test_every_option_says_what_it_is(name):
    assert [written(action) for action in options_of(name) if not action.help] == []
