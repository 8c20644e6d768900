"""`call_command("runworker")` from scripts and tests: it works, returns, and raises what it should.

A script without the `if __name__ == "__main__"` that multiprocessing asks for is a script as well.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import redirect_stderr
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.process import rows

REPORT = {"tenant_id": "acme", "report_month": "2042-01"}
WAYS = {
    "keywords": lambda: call_command("runworker", drain=True),
    "arguments": lambda: call_command("runworker", "--drain"),
    "solo": lambda: call_command("runworker", drain=True, solo=True),
    "queues": lambda: call_command("runworker", drain=True, queues=["reports"]),
    "leasequeue": lambda: call_command("leasequeue", "worker", "--drain"),
}


@pytest.fixture
def report_id(queue_db) -> int:
    """A report that waits to be made."""
    return enqueue("report.generate", REPORT, queue="reports").id


@pytest.mark.parametrize("way", WAYS)
def test_from_a_test(report_id, way):
    log = StringIO()
    with redirect_stderr(log):
        assert WAYS[way]() is None
    assert rows.job(report_id).status == "done"
    assert rows.outcomes(report_id) == ["completed"]
    assert '"event":"worker_stopped"' in log.getvalue()


@pytest.mark.parametrize("way", ["keywords", "solo"])
def test_from_another_thread(report_id, way):
    returned = []

    def run():
        returned.append(WAYS[way]())
        connections.close_all()  # those of the handlers, which a solo worker leaves to its thread

    thread = threading.Thread(target=run)
    with redirect_stderr(StringIO()):
        thread.start()
        thread.join()
    assert returned == [None]
    assert rows.job(report_id).status == "done"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_jobs": 0}, "--max-jobs must be at least 1"),
        ({"max_jobs": "3"}, "'max_jobs' must be int or None, not '3'"),
        ({"queues": ["a", 5]}, "'queues' must be str or a list of str"),
        ({"profile": ["mail"]}, "There is no worker profile 'mail'. Known: none"),
        ({"profile": "mail"}, "There is no worker profile 'mail'. Known: none"),
    ],
)
def test_wrong_options_are_command_errors(report_id, options, message):
    with pytest.raises(CommandError, match=message) as caught:
        call_command("runworker", drain=True, **options)
    assert caught.value.returncode == 2
    assert rows.job(report_id).status == "ready"


def test_reload_is_for_the_main_thread(queue_db):
    errors = []

    def run():
        try:
            call_command("runworker", reload=True)
        except CommandError as error:
            errors.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert errors == ["--reload works in the main thread only."]


SCRIPT = """
import sys

import django
from django.core.management import call_command

django.setup()
answer = call_command("runworker", "--drain", log_format="text")
print("returned", answer, flush=True)
"""


@pytest.fixture
def script(process_environment, tmp_path):
    """Run a program text as a script in a process of its own."""

    def run(text):
        path = tmp_path / "script.py"
        path.write_text(text)
        return subprocess.run(
            [sys.executable, "-W", "error", str(path)],
            env=process_environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_from_a_script(queue_db, script):
    ids = [enqueue("proc.note").id for _ in range(3)]
    ended = script(SCRIPT)
    assert (ended.returncode, ended.stdout) == (0, "returned None\n"), ended.stderr
    assert ended.stderr.count("worker_started") == 1
    assert {*Job.objects.values_list("id", "status")} == {(job_id, "done") for job_id in ids}


def test_a_fatal_error_is_the_script_s_exit_code(queue_db, script):
    enqueue("proc.note")
    with queue_db.cursor() as cursor:
        cursor.execute("ALTER TABLE leasequeue_job RENAME TO leasequeue_job_away")
    try:
        ended = script(SCRIPT)
    finally:
        with queue_db.cursor() as cursor:
            cursor.execute("ALTER TABLE leasequeue_job_away RENAME TO leasequeue_job")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "worker_fatal" in ended.stderr
    assert "Traceback" not in ended.stderr
