"""PostgreSQL from the system's own packages, as a private cluster."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from tests.harness.packages import POSTGRES_PROGRAMS
from tests.harness.problems import Problem
from tests.harness.server import USER, Server, version_in

OPTIONS = {"listen_addresses": "127.0.0.1", "max_connections": "300"}

#: Fast: a crash of the machine may lose or break the data.
DISPOSABLE = {
    "shared_buffers": "128MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}

#: For benchmarks, which count statements where they ask for it.
DURABLE = {
    "shared_buffers": "1GB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
}


class PostgreSQL(Server):
    """A throwaway PostgreSQL."""

    name = "postgres"
    scheme = "postgres"
    #: "Fast shutdown": SIGTERM would wait for every client to leave.
    stop_signal = signal.SIGINT

    def find(self) -> str:
        """Return the version of the newest postgres installed."""
        answer = subprocess.run(
            [_program("postgres"), "--version"], capture_output=True, text=True, check=True
        )
        return version_in(answer.stdout)

    def initialise(self) -> None:
        """Make the cluster; its superuser is ours, with a password over TCP."""
        password = self.folder / "password"
        self.write(password, self.password)
        self.run(
            "initialise",
            [
                _program("initdb"),
                f"--pgdata={self.folder}/data",
                f"--username={USER}",
                f"--pwfile={password}",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
                "--no-sync",
            ],
        )

    def command(self) -> list[str]:
        """Return postgres with its settings."""
        places = {"port": self.port, "unix_socket_directories": self.folder / "run"}
        profile = DURABLE if self.durable else DISPOSABLE
        settings = [f"{key}={value}" for key, value in {**OPTIONS, **profile, **places}.items()]
        options = [word for setting in settings for word in ("-c", setting)]
        return [_program("postgres"), "-D", f"{self.folder}/data", *options]

    def ready(self) -> bool:
        """Ask with PostgreSQL's own program."""
        ask = [_program("pg_isready"), "-q", "-h", f"{self.folder}/run", "-p", str(self.port)]
        return subprocess.run(ask, check=False).returncode == 0


def _program(name: str) -> str:
    def release(path: Path) -> int:
        return int(path.parts[-3])

    found = sorted(POSTGRES_PROGRAMS.glob(f"*/bin/{name}"), key=release)
    if not found:
        raise Problem(f"PostgreSQL's {name} is not installed (apt-get install postgresql)")
    return str(found[-1])
