"""A private, throwaway database server on loopback: the part that all three have in common.

Its data lie in a temporary folder of their own; as root it runs as `nobody`. It is a child of this
process, so only ever the server that was started here gets a signal.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from tests.harness.problems import Problem, say
from tests.harness.tied import tied

CHECKOUT = Path(__file__).resolve().parents[2]
USER = "leasequeue"
PID_FILE = "pid"
START_SECONDS = 60
STOP_SECONDS = 30


def parent_folder() -> Path:
    """Return the temporary folder of this checkout's servers, for this user."""
    checkout = hashlib.sha256(str(CHECKOUT).encode()).hexdigest()[:8]
    folder = Path(tempfile.gettempdir()) / f"leasequeue-tests-{os.geteuid()}-{checkout}"
    folder.mkdir(mode=0o711, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise Problem(f"{folder} belongs to somebody else: remove it, or set TMPDIR")
    return folder


class Server:
    """One server, from its empty folder to its end. Subclasses know one product."""

    name: str
    scheme: str
    stop_signal = signal.SIGTERM

    def __init__(self, *, durable: bool = False) -> None:
        #: For benchmarks: every commit is on the disk before it is acknowledged.
        self.durable = durable
        self.password = secrets.token_hex(12)
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.folder = Path()

    # What a product has to say.

    def find(self) -> str:
        """Return the version of the programs found. Raises Problem when they are missing."""
        raise NotImplementedError

    def initialise(self) -> None:
        """Fill the empty data folder."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """Return the command line that runs the server in the foreground."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Return whether this very server answers on its private socket."""
        raise NotImplementedError

    def load_time_zones(self) -> None:
        """Fill the server's time zone tables, where it keeps its own."""

    # What is the same for all.

    def start(self, *, dies_with_us: bool = True) -> None:
        """Start and wait until it answers. Raises Problem with the log's end when it does not.

        Unless told otherwise the server stops when this process dies, even by kill -9.
        """
        began = time.monotonic()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=parent_folder()))
        for folder in (self.folder, self.folder / "data", self.folder / "run"):
            folder.mkdir(mode=0o700, exist_ok=True)
            self.give(folder)
        self.initialise()
        self.port = self.port or free_port()
        if not self._launch(dies_with_us=dies_with_us):
            words = self.tail("server")
            self.stop()
            raise Problem(f"{self.name} did not start:\n{words}")
        self.load_time_zones()
        say(f"{self.name} answers on 127.0.0.1:{self.port} ({time.monotonic() - began:.1f} s)")

    def crash(self) -> None:
        """Kill the server where it stands, as a lack of memory would."""
        assert self.process
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """Start a server that has crashed on its data, at its port, and wait until it answers.

        Tries for as long as what it left behind (PostgreSQL's backends) still holds the data.
        Raises Problem when it does not come back.
        """
        deadline = time.monotonic() + START_SECONDS
        while not self._launch(dies_with_us=True):
            if time.monotonic() > deadline:
                raise Problem(f"{self.name} did not come back:\n{self.tail('server')}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server if it runs, and remove its data."""
        self.end()
        if self.folder != Path():
            shutil.rmtree(self.folder, ignore_errors=True)

    def end(self) -> None:
        """Stop the server if it runs."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(self.stop_signal)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def url(self, database: str) -> str:
        """Return the DATABASE_URL of a database on this server."""
        return f"{self.scheme}://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def log(self, name: str) -> Path:
        """Return the file that takes a program's output."""
        return self.folder / "run" / f"{name}.log"

    def run(self, name: str, command: Sequence[str]) -> None:
        """Run one program to its end as the server's user. Raises Problem when it fails."""
        with self.log(name).open("ab") as log:
            code = self.spawn(command, log).wait()
        if code != 0:
            raise Problem(f"{self.name}: {command[0]} failed:\n{self.tail(name)}")

    def spawn(self, command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program as the server's user, in a session of its own: Ctrl-C is not for it."""
        identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        return subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **identity,
        )

    def give(self, path: Path) -> None:
        """Let the server's user own a file or folder."""
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(path, nobody.pw_uid, nobody.pw_gid)

    def write(self, path: Path, text: str) -> None:
        """Write a file that only the server's user can read."""
        path.touch(mode=0o600)
        path.write_text(text)
        self.give(path)

    def tail(self, name: str) -> str:
        """Return the end of a program's output."""
        return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-20:])

    def _launch(self, *, dies_with_us: bool) -> bool:
        """Run the server on its data; return whether it answers, or has ended or said nothing."""
        command = self.command()
        if dies_with_us:
            command = tied(command, self.stop_signal)
        with self.log("server").open("ab") as log:
            self.process = self.spawn(command, log)
        (self.folder / PID_FILE).write_text(str(self.process.pid))
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def version_in(text: str) -> str:
    """Return the first version number in what a program says of itself."""
    found = re.search(r"\d+\.\d+(\.\d+)?", text)
    return found.group() if found else "?"


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
