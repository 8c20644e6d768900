"""Every statement that writes a job is known, with the fence it stands behind."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house_rules import sources

#: Function -> what its WHERE names. With TOKEN: tests/core/test_fence.py runs it with old ones.
TOKEN = "lease_token"
WRITES = {
    ("lease", "hold_within"): TOKEN,
    ("lease", "_renew"): TOKEN,
    ("checkpoint", "save_checkpoint"): TOKEN,
    ("progress", "_write"): TOKEN,
    ("settle", "_update"): TOKEN,
    ("bury", "_end"): TOKEN,
    # These take what nobody holds, under the row's lock, and say so again in the WHERE.
    ("take", "_reserve"): "status",
    ("take", "_end_unclaimed"): "status",
    ("recover", "_take_back"): "lease_until",
    ("recover", "_give_up"): "lease_until",
    ("bury", "_write"): "status",
    ("park", "_wake"): "status",
    # These belong to producers and operators, and know statuses only.
    ("replace", "_write"): "status",
    ("operating", "update_jobs"): "status",
    # These stand for a rival or a dead worker in a project's own tests.
    ("simulate", "end_lease"): "status",
    ("simulate", "take_lease"): "status",
    # Signatures belong to nobody's lease; the row is locked, and says what was read of it.
    ("resign", "_write"): "signature",
}
#: core/lease.py's fence(), which names the token, as the statements call it.
FENCE = "{held}"


def updates() -> dict[tuple[str, str], str]:
    """Return the UPDATE of the jobs' table in each function that has one, as its source."""
    return {
        (path.stem, function.name): ast.unparse(text)
        for path in sources()
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef)
        for text in ast.walk(function)
        if isinstance(text, ast.Constant | ast.JoinedStr)
        and re.search(r"UPDATE leasequeue_job\b", ast.unparse(text))
        and not isinstance(text, ast.Constant)
    }


def test_every_writing_function_is_known():
    """B18: a new one is to be put behind a fence, into this table and into test_fence.py."""
    assert set(updates()) == set(WRITES)


@pytest.mark.parametrize("function", WRITES, ids=".".join)
def test_its_condition(function):
    """B18: the condition is in the statement itself, not in a read before it."""
    condition = updates()[function].partition("WHERE")[2]
    demand = WRITES[function]
    assert demand in condition or (demand is TOKEN and FENCE in condition)
