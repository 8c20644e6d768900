"""One run of the soak: a worker on a full queue, looked at from outside until it has drained it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from django.db import connection

from django_leasequeue import enqueue_many
from django_leasequeue.models import Job, JobAttempt
from tests.harness.tied import tied
from tests.soak.processes import Usage, children_of
from tests.soak.series import Sample

_MANAGE = Path(__file__).resolve().parents[2] / "testproject" / "manage.py"
_EVERY = 0.25
_BATCH = 5000
_CONNECTIONS = {
    "mysql": "SELECT COUNT(*) - 1 FROM information_schema.processlist WHERE db = DATABASE()",
    "postgresql": (
        "SELECT COUNT(*) - 1 FROM pg_stat_activity"
        " WHERE datname = current_database() AND backend_type = 'client backend'"
    ),
}


@dataclass
class Soak:
    """A worker with `options`, which are to give it so many `children`, and what was seen of it."""

    options: list[str]
    children: int
    jobs: int
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Fill the queue, run the worker until it is empty, and note what is wrong."""
        before = JobAttempt.objects.count()
        _fill(self.jobs)
        with tempfile.TemporaryFile("w+") as log:
            began = time.monotonic()
            worker = self._start(log.fileno())
            try:
                self._watch(worker, began)
            finally:
                worker.kill()
                code = worker.wait()
            self.seconds = time.monotonic() - began
            if code != 0:
                log.seek(0)
                self.problems.append(f"exit code {code}, after:\n{''.join(log.readlines()[-20:])}")
        if unfinished := Job.objects.unfinished().count():
            self.problems.append(f"{unfinished} jobs were not finished")
        if (runs := JobAttempt.objects.count() - before) != self.jobs:
            self.problems.append(f"{runs} attempts for {self.jobs} jobs")

    def _start(self, log: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(_MANAGE), "runworker", "--drain", *self.options]
        environment = {**os.environ, "DATABASE_URL": _url()}
        return subprocess.Popen(
            tied(command), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def _watch(self, worker: subprocess.Popen[bytes], began: float) -> None:
        first: list[int] = []
        while worker.poll() is None:
            time.sleep(_EVERY)
            try:
                helpers = children_of(worker.pid)
                children = [child for helper in helpers for child in children_of(helper)]
                seen = self._sample(time.monotonic() - began, worker.pid, helpers, children)
            except OSError:
                continue  # one of them has just ended
            if len(children) >= self.children:  # else they are about to start, or to end
                self.samples.append(seen)
                first = first or children
                if set(children) - set(first):
                    self.problems.append(f"children were replaced: {first} by {children}")
                    first = children

    def _sample(
        self, seconds: float, control: int, helpers: list[int], children: list[int]
    ) -> Sample:
        one, others, all_of_them = (Usage.of(pids) for pids in ([control], helpers, children))
        return Sample(
            seconds=seconds,
            control_mib=one.mebibytes,
            children_mib=all_of_them.mebibytes,
            helpers_mib=others.mebibytes,
            control_threads=one.threads,
            children_threads=all_of_them.threads,
            control_files=one.descriptors,
            children_files=all_of_them.descriptors,
            connections=_connections(),
        )


def _fill(count: int) -> None:
    for start in range(0, count, _BATCH):
        enqueue_many(list(_jobs(start, min(_BATCH, count - start))))


def _jobs(start: int, count: int) -> Iterator[tuple[str, dict[str, str], dict[str, str]]]:
    """Half of the jobs return a result; half complete with a business row of their own."""
    for number in range(start, start + count):
        yield ("proc.report", {}, {}) if number % 2 else ("proc.note", {"text": f"{number}"}, {})


def _connections() -> int:
    if connection.vendor not in _CONNECTIONS:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_CONNECTIONS[connection.vendor])
        return int(cursor.fetchone()[0])


def _url() -> str:
    """Return the DATABASE_URL of the database that was made for this run."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    scheme = "postgres" if connection.vendor == "postgresql" else "mysql"
    login = f"{quote(settings['USER'], safe='')}:{quote(settings['PASSWORD'], safe='')}"
    return f"{scheme}://{login}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
