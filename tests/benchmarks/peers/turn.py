"""One turn of a peer: a fresh database, jobs, its worker until the last job has run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit, urlunsplit

from django.db import connection

from tests.benchmarks.drains import WrongResult
from tests.benchmarks.peers import Peer
from tests.benchmarks.project import url_of
from tests.benchmarks.rounds import Bench
from tests.harness.tied import tied

_SECONDS = 600
_STOP_SECONDS = 15
_LOOK = 0.002


@dataclass
class Turn:
    """A peer, the Python that has it, how many jobs it gets and of which kind."""

    bench: Bench
    peer: Peer
    python: str
    count: int
    kind: str = "noop"

    def __call__(self) -> Mapping[str, float]:
        """Return the jobs per second, from the first job that ran to the last."""
        marks = self.bench.folder / "marks"
        marks.unlink(missing_ok=True)
        with fresh_database(self.bench, f"lq_peer_{self.peer.adapter}") as url:
            return {"": self.count / self._measure(url, marks)}

    def _measure(self, url: str, marks: Path) -> float:
        environment = {**os.environ, "DATABASE_URL": url, "PEER_MARKS": str(marks)}
        if self.peer.redis:
            environment["PEER_REDIS_URL"] = os.environ["BENCH_REDIS_URL"]
        self._run(environment, "setup")
        self._run(environment, "enqueue", str(self.count), self.kind)
        seconds = self._work(environment, marks)
        self._check(environment, marks)
        return seconds

    def _command(self, verb: str, *words: str) -> list[str]:
        return [self.python, "-m", "tests.benchmarks.peers", self.peer.adapter, verb, *words]

    def _run(self, environment: Mapping[str, str], verb: str, *words: str) -> str:
        answer = subprocess.run(
            self._command(verb, *words),
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode:
            raise WrongResult(f"{verb}: {answer.stderr.strip()[-1500:]}")
        return answer.stdout

    def _work(self, environment: Mapping[str, str], marks: Path) -> float:
        with (self.bench.folder / f"peer-{self.peer.adapter}.log").open("wb") as log:
            worker = subprocess.Popen(
                tied(self._command("work", *filter(None, [self.peer.option]))),
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            first = self._wait(worker, marks, 1, log.name)
            return self._wait(worker, marks, self.count, log.name) - first
        finally:
            # What it buffers reaches its tables when it stops, if not before.
            worker.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                worker.wait(_STOP_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()

    def _wait(self, worker: subprocess.Popen[bytes], marks: Path, count: int, log: str) -> float:
        deadline = time.monotonic() + _SECONDS
        while _size(marks) < count:
            if worker.poll() is not None or time.monotonic() > deadline:
                last = Path(log).read_text(errors="replace")[-1500:]
                raise WrongResult(f"{_size(marks)} of {self.count} jobs ran: {last}")
            time.sleep(_LOOK)
        return time.monotonic()

    def _check(self, environment: Mapping[str, str], marks: Path) -> None:
        ran, done = _size(marks), int(self._run(environment, "done"))
        if not ran == done == self.count:
            raise WrongResult(f"{self.count} jobs: {ran} ran, {done} are done by its own records")
        if self.kind == "effect" and (rows := effects(environment["DATABASE_URL"])) != self.count:
            raise WrongResult(f"{self.count} jobs wrote {rows} rows")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


@contextmanager
def fresh_database(bench: Bench, name: str) -> Iterator[str]:
    """Make an empty database for the block, which gets its DATABASE_URL."""
    if bench.kind == "sqlite":
        with TemporaryDirectory(dir=bench.folder) as folder:
            yield f"sqlite:///{folder}/{name}.sqlite3"
        return
    drop = f"DROP DATABASE IF EXISTS {name}{' WITH (FORCE)' if bench.kind == 'postgres' else ''}"
    with connection.cursor() as cursor:
        cursor.execute(drop)
        cursor.execute(f"CREATE DATABASE {name}")
        try:
            yield urlunsplit(urlsplit(url_of("default"))._replace(path=f"/{name}"))
        finally:
            cursor.execute(drop)


def effects(url: str) -> int:
    """Count the rows that the jobs wrote."""
    from tests.benchmarks.limits.driver import connect

    database = connect(url)
    try:
        database.execute("SELECT COUNT(*) FROM bench_effect")
        return int(database.cursor.fetchone()[0])
    finally:
        database.connection.close()
