"""The lease protocol, checked by Spin in every order of steps, within the bounds of lease.pml."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

MODEL = Path(__file__).with_name("lease.pml")
#: The rules that the model can do without, and what then is found to be wrong.
RULES = {
    "FENCE": r"ended\[|expired",
    "TOKEN": r"ended\[",
    "DEADLINE": r"expired",
    "EXPIRY": r"expired",
    "CLAIM_LOCK": r"effects==1",
    "SKIP_LOCKED": r"ended\[",
    "RECOVERY": r"status==",
}

# The model is the same for all databases; a compiler is there where mysqlclient needs one.
pytestmark = [pytest.mark.only_on("mariadb"), pytest.mark.timeout(600)]

Search = Callable[..., str]


@pytest.fixture
def search(tmp_path: Path) -> Search:
    """Returns a function that searches all states and returns what Spin says about it."""
    absent = [program for program in ("spin", "gcc") if not shutil.which(program)]
    if absent and os.environ.get("CI", "").lower() in {"true", "1"}:
        pytest.fail(f"the model needs {', '.join(absent)}", pytrace=False)
    if absent:
        pytest.skip(f"needs {', '.join(absent)}")

    def said(*command: str) -> str:
        answer = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def search(*defines: str, compiled: Sequence[str] = ("-DSAFETY",), how: str = "") -> str:
        said("spin", "-a", *[f"-D{name}" for name in defines], str(MODEL))
        said("gcc", "-O2", "-w", "-DCOLLAPSE", *compiled, "-o", "pan", "pan.c")
        return said("./pan", "-m100000", *how.split())

    return search


def errors(said: str) -> int:
    """Return how many errors a search has found that was not cut short."""
    found = re.search(r"depth reached \d+, errors: (\d+)", said)
    assert found, said
    assert int(found[1]) or "Search not completed" not in said, said
    assert "max search depth too small" not in said, said
    return int(found[1])


def test_nothing_is_doubled_and_every_end_is_final(search):
    said = search()
    assert errors(said) == 0, said
    states = re.search(r"^ *(\S+) states, stored", said, re.MULTILINE)
    assert states, said
    assert float(states[1]) > 2_000_000


def test_nothing_goes_on_for_ever(search):
    said = search("FAULTS=1", "COMMANDS=1", compiled=("-DNP",), how="-l")
    assert errors(said) == 0, said


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_can_be_left_out(search, rule):
    said = search(f"WITHOUT_{rule}")
    assert errors(said) == 1, said
    violated = re.search(r"assertion violated (.*) \(at depth", said)
    assert violated, said
    assert re.search(RULES[rule], violated[1]), said


def test_each_rule_is_one_of_the_model():
    assert set(re.findall(r"WITHOUT_(\w+)$", MODEL.read_text(), re.MULTILINE)) == set(RULES)
