"""A disk of the database's that is full: nothing can be written, and then it can again."""

from __future__ import annotations

import re
from typing import Any

from django_leasequeue import Fixed, enqueue
from tests.core.arrange import job, outcomes
from tests.core.reports import make_report, reports
from tests.faults import Fault, broken_everywhere
from tests.field.workers import working
from tests.waiting import wait_until

FULL: dict[str, list[Any]] = {
    "mysql": [1021, 1114],
    "postgresql": ["53100"],
    "sqlite": ["database or disk is full"],
}
_WRITES = re.compile(r"\s*(/\*.*?\*/)?\s*(INSERT|UPDATE)\b")


def writes(sql):
    return bool(_WRITES.match(sql))


def test_the_worker_waits_and_each_job_is_done_once(connection, declare):
    """Claims and settlements fail for a while; the worker neither ends nor loses a job."""

    @declare("t", takes_context=True, backoff=Fixed(0), max_attempts=50)
    def handler(context):
        with context.complete():
            make_report(f"{context.job_id}")

    made = []
    for code in FULL[connection.vendor]:
        made.append(enqueue("t").id)
        fault = Fault(code, match=writes, times=8)
        with broken_everywhere(fault), working():
            wait_until(lambda: job(made[-1]).status == "done", timeout=40)
        assert fault.fired == 8
    assert sorted(reports()) == sorted(map(str, made))
    assert [outcomes(job_id)[-1] for job_id in made] == ["completed"] * len(made)
