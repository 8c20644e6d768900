"""`manage.py leasequeue` as a process: a pipe that ends, Ctrl-C, usage errors, a server away."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from django_leasequeue import enqueue_many

MANAGE = Path(__file__).resolve().parents[2] / "testproject" / "manage.py"
COMMAND = [sys.executable, "-W", "error", str(MANAGE), "leasequeue"]


def test_a_reader_that_goes_away_is_no_error(queue_db, process_environment):
    enqueue_many([("arranged", {"text": "x" * 500}, {}) for _ in range(400)])
    jobs = shlex.join([*COMMAND, "jobs", "--payload", "--limit", "400"])
    script = f"{jobs} | head -1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", script],
        env=process_environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    titles, code = ended.stdout.splitlines()
    assert titles.split()[:2] == ["id", "type"]
    assert (code, ended.stderr) == ("141", "")


def test_ctrl_c_ends_a_watch_cleanly(queue_db, process_environment):
    process = subprocess.Popen(
        # The suite may run where Ctrl-C is ignored, as what a shell has put in the background.
        ["env", "--default-signal=INT", *COMMAND, "status", "--watch", "60"],
        env=process_environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None and process.stderr is not None
        first = iter(process.stdout.readline, "")
        assert any(line.startswith("pending burials") for line in first)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "")


def test_a_usage_error_is_2_and_names_the_option(queue_db, manage):
    ended = manage("leasequeue", "jobs", "--limit", "0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "argument --limit: 0 is not between 1 and 10000" in ended.stderr
    ended = manage("leasequeue", "jobs", "x\x1b")
    assert ended.returncode == 2
    assert r"'x\x1b' is no job id" in ended.stderr


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_a_server_that_is_away_is_one_line_and_1(
    queue_db, process_environment, database_url, manage
):
    head, _, name = database_url.rpartition("/")
    nowhere = f"{head.rpartition(':')[0]}:1/{name}"
    ended = manage("leasequeue", "status", env={"DATABASE_URL": nowhere})
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "The database 'default' cannot be used: OperationalError" in ended.stderr
    assert ended.stderr.count("\n") == 1


LISTING = """
import sys
from contextlib import suppress

import django
from django.core.management import execute_from_command_line

django.setup()
with suppress(SystemExit):
    execute_from_command_line(["manage.py", "leasequeue", "--help"])
print([name for name in sys.modules if name.startswith("django_leasequeue.runtime.worker")])
"""


def test_the_list_of_sub_commands_loads_none_of_them(queue_db, process_environment):
    ended = subprocess.run(
        [sys.executable, "-c", LISTING],
        env={
            **process_environment,
            "DJANGO_SETTINGS_MODULE": "testproject.settings",
            "PYTHONPATH": f"{MANAGE.parents[1]}:{MANAGE.parent}",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stdout.splitlines()[-1] == "[]", ended.stderr
