"""`leasequeue health`: exit code and one line, from the file or from the database."""

from __future__ import annotations

import os

import pytest

from django_leasequeue import enqueue
from tests.core.arrange import shift


def test_the_database(queue_db, leasequeue):
    ended = leasequeue("health")
    assert (ended.code, ended.out) == (0, "ok\n")
    assert leasequeue("health", "--json").document == {"ok": True, "problem": ""}


def test_a_due_job_that_waits(queue_db, leasequeue):
    shift(queue_db, enqueue("arranged").id, "available_at", -3600)
    assert leasequeue("health").code == 0
    assert leasequeue("health", "--max-oldest", "7200").code == 0
    ended = leasequeue("health", "--max-oldest", "60", "--json")
    assert ended.code == 1
    assert ended.document["problem"].startswith("a due job has waited for 36")


def test_the_heartbeat_file(queue_db, leasequeue, tmp_path):
    path = tmp_path / "beat"
    ended = leasequeue("health", "--heartbeat-file", path)
    assert ended.code == 1
    assert ended.out.startswith("there is no heartbeat file")
    path.write_text('{"pid": 1, "not_ready": "stopping"}')
    assert leasequeue("health", "--heartbeat-file", path).code == 0
    ended = leasequeue("health", "--heartbeat-file", path, "--ready")
    assert (ended.code, ended.out) == (1, "stopping\n")
    os.utime(path, (0, 0))
    assert leasequeue("health", "--heartbeat-file", path, "--max-age", "10").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ready",),
        ("--max-age", "5"),
        ("--max-oldest", "0"),
        ("--max-oldest", "nan"),
        ("--heartbeat-file", "x", "--max-oldest", "5"),
        ("--heartbeat-file", "x", "--max-age", "-1"),
    ],
)
def test_refused(queue_db, leasequeue, arguments):
    ended = leasequeue("health", *arguments)
    assert ended.code == 2
    assert ended.out == ""
