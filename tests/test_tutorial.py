"""The tutorial, run: its files are written, its commands executed, its output awaited."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings

from tests import markdown
from tests.harness.tied import tied
from tests.markdown import Block

SECONDS = 30
_FILE = re.compile(r"(?:.* )?(?P<what>Append to|Replace|Create) `(?P<path>[\w./]+)`:")
_ENDED = "--- block ended ---"


class Shell:
    """One bash that runs block after block; both its streams are read as they are written."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        self._process = subprocess.Popen(
            tied(["bash", "-eu"]),
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name="the tutorial's output")
        self._reader.start()

    def run(self, code: str) -> None:
        """Send a block; AssertionError when it does not end well in time."""
        assert self._process.stdin
        self._process.stdin.write(f"{code}\necho {shlex.quote(_ENDED)}\n")
        self._process.stdin.flush()
        self.expect(re.escape(_ENDED), self._position())

    def expect(self, pattern: str, after: int) -> int:
        """Return the number after the first line that matches, at or after line `after`."""
        with self._news:
            self._news.wait_for(lambda: self._ended or self._find(pattern, after), SECONDS)
        found = self._find(pattern, after)
        assert found, f"not printed: {pattern}\n" + "\n".join(self.lines)
        return found

    def close(self) -> None:
        """End the shell and whatever it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def _position(self) -> int:
        return len(self.lines) - self.lines[::-1].index(_ENDED) if _ENDED in self.lines else 0

    def _find(self, pattern: str, after: int) -> int | None:
        numbers = range(after, len(self.lines))
        return next((n + 1 for n in numbers if re.fullmatch(pattern, self.lines[n])), None)

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    unset = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL"}
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    env["PYTHONPATH"] = str(markdown.ROOT)
    env["PYTHONWARNINGS"] = "error"
    shell = Shell(tmp_path, env)
    yield shell
    shell.close()


@pytest.mark.skipif(
    not settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"),
    reason="the tutorial is on SQLite, whatever this run is on: once is enough",
)
def test_the_tutorial_does_what_it_says(shell, tmp_path):
    began = 0
    for block in markdown.blocks(markdown.read("tutorial.md")):
        if block.before.startswith("<!-- not run"):
            continue
        if block.language == "python":
            write(tmp_path, block)
        elif block.language == "bash":
            began = len(shell.lines)
            shell.run(refused(block.code) if block.before == "<!-- fails -->" else block.code)
        else:
            position = began
            for line in block.code.splitlines():
                position = shell.expect(re.escape(line).replace("…", r"\S*"), position)


def write(folder: Path, block: Block) -> None:
    """Do what the line above a file's text says."""
    found = _FILE.fullmatch(block.before)
    assert found, f"line {block.line}: what is to be done with this file?"
    file = folder / found["path"]
    assert file.exists() != (found["what"] == "Create"), file.name
    with file.open("a" if found["what"] == "Append to" else "w", encoding="utf-8") as text:
        text.write(f"\n{block.code}\n")


def refused(code: str) -> str:
    """Return a command that ends well when `code` does not."""
    return f"if {code}; then echo ended well; exit 1; fi"
