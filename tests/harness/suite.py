"""Running the suite: pytest once for each environment and database, two at a time.

Tests that failed there run once more, alone: on a machine that is full of workers and servers, a
process that gets no processor for seconds is not what they are about. Both runs are printed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.problems import say
from tests.harness.tied import tied
from tests.harness.venvs import CHECKOUT

AT_ONCE = 2
#: The browser tests' pictures of this run, for whoever looks into a failure.
SCREENSHOTS = str(CHECKOUT / ".cache" / "screenshots")
LIMIT_SECONDS = 40 * 60
#: What the crash-point sweep draws its sample with: a test that is repeated draws the same.
SEED = str(random.randrange(10**6))
#: More failures in one run than this have a cause of their own.
MOST_REPEATED = 3


@dataclass
class Run:
    """One pytest run: an environment on a database, and how it went."""

    title: str
    columns: tuple[str, ...]
    program: Path
    url: str
    skipped: str = ""
    left_out: tuple[str, ...] = ()
    #: The folders to run; everything when there are none.
    only: tuple[str, ...] = ()
    code: int | None = None
    closing: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    started: float = 0.0
    output: Path = Path()
    cache: Path = Path()
    #: The tests that failed while other runs went on, and passed alone.
    repeated: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """How it went, in a word or three."""
        if self.skipped:
            return "SKIPPED"
        if self.code != 0:
            return "FAILED"
        return "ok when repeated" if self.repeated else "ok"


def run_all(runs: list[Run], arguments: list[str]) -> None:
    """Run what is not skipped; each output is printed whole when its run ends."""
    waiting = deque(run for run in runs if not run.skipped)
    active: list[Run] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or active:
                while waiting and len(active) < AT_ONCE:
                    active.append(_start(waiting.popleft(), Path(folder), arguments))
                for run in [run for run in active if _ended(run)]:
                    active.remove(run)
                    _finish(run)
                time.sleep(0.1)
            for run in runs:
                if failed := _to_repeat(run):
                    run.repeated = failed
                    first = run.closing
                    active.append(_start(run, Path(folder), [*arguments, "--last-failed"]))
                    _wait(run)
                    run.closing = f"{first}; alone: {run.closing}"
        finally:
            for run in active:
                _abort(run)


def _wait(run: Run) -> None:
    while not _ended(run):
        time.sleep(0.1)
    _finish(run)


def _start(run: Run, folder: Path, arguments: list[str]) -> Run:
    say(f"{run.title}: started")
    run.output = folder / f"{run.title.replace(' ', '-')}.txt"
    run.started = time.monotonic()
    # Several runs at once would write one .pytest_cache.
    run.cache = folder / f"{run.output.stem}-cache"
    command = [
        str(run.program),
        "-m",
        "pytest",
        "-o",
        f"cache_dir={run.cache}",
        "--durations=25",
        "--durations-min=3",
        *run.only,
        *arguments,
    ]
    command += [f"--ignore={folder}" for folder in run.left_out]
    with run.output.open("wb") as output:
        run.process = subprocess.Popen(
            tied(command),
            cwd=CHECKOUT,
            env={
                "LEASEQUEUE_SCREENSHOTS": SCREENSHOTS,
                "LEASEQUEUE_SWEEP_SEED": SEED,
                **os.environ,
                "DATABASE_URL": run.url,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return run


def _ended(run: Run) -> bool:
    assert run.process
    if time.monotonic() - run.started > LIMIT_SECONDS:
        say(f"{run.title}: not done after {LIMIT_SECONDS // 60} minutes, aborting it")
        _abort(run)
    return run.process.poll() is not None


def _finish(run: Run) -> None:
    assert run.process
    run.code = run.process.returncode
    text = run.output.read_text(errors="replace")
    lines = [line.strip("= ") for line in text.splitlines() if line.strip("= ")]
    run.closing = lines[-1] if lines else f"no output, exit code {run.code}"
    say(f"{run.title}: ended, its output:")
    print(text, flush=True)


def _to_repeat(run: Run) -> list[str]:
    """Return the few tests that failed in a run that ended by itself, else nothing."""
    if run.skipped or run.code != 1:
        return []
    try:
        failed = json.loads((run.cache / "v/cache/lastfailed").read_text())
    except FileNotFoundError:
        return []
    return sorted(failed) if len(failed) <= MOST_REPEATED else []


def _abort(run: Run) -> None:
    """Let pytest tear its fixtures down, then end what is left of it."""
    assert run.process
    for sign, seconds in ((signal.SIGINT, 10), (signal.SIGKILL, 10)):
        try:
            os.killpg(run.process.pid, sign)
            run.process.wait(seconds)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
        else:
            break


def print_table(runs: list[Run]) -> None:
    """Print one line for each run, with pytest's own closing line or why it did not happen."""
    rows = [(*run.columns, run.state, run.skipped or run.closing) for run in runs]
    rows.insert(0, ("Python", "Django", "database", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths)]
        print("  ".join([*cells, row[4].splitlines()[0] if row[4] else ""]).rstrip(), flush=True)
    for run in runs:
        for test in run.repeated:
            print(f"{run.title}: failed beside other runs: {test}", flush=True)
