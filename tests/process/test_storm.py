"""The kill storm, in short: what `make chaos` runs for as long as one likes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.databases import SERVERS, external_url
from tests.harness.problems import Problem

ROOT = Path(__file__).resolve().parents[2]
SECONDS = "25"
JOBS = "500"


@pytest.mark.timeout(360)
def test_a_storm_loses_nothing_and_doubles_nothing(db_kind):
    command = [sys.executable, "-m", "tests.chaos", db_kind, *server_of(db_kind)]
    command += ["--seconds", SECONDS, "--jobs", JOBS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    storm = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=330, check=False
    )
    assert storm.returncode == 0, f"{storm.stdout}\n{storm.stderr}"
    print(storm.stdout)  # noqa: T201  (the seed and the figures, for whoever asks with -s)


def server_of(db_kind: str) -> list[str]:
    """Return the option for the suite's server where it is given, or none can be started.

    Else the storm starts one of its own, to be killed.
    """
    if db_kind not in SERVERS:
        return []
    if not external_url(db_kind):
        try:
            SERVERS[db_kind]().find()
        except Problem:
            pass
        else:
            return []
    return ["--url", os.environ["DATABASE_URL"]]
