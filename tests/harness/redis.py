"""A private Redis, for the benchmarks of queues that need one."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from tests.harness.packages import find_program
from tests.harness.problems import Problem
from tests.harness.server import Server, version_in


class Redis(Server):
    """A throwaway Redis that keeps its append-only file as a broker would: a second at most."""

    name = "redis"
    scheme = "redis"

    def find(self) -> str:
        """Return the version of the programs."""
        # The server and the checker of its files are one program, which goes by its name.
        program = find_program("redis-check-rdb")
        if not program:
            raise Problem("Redis is not installed (apt-get install redis-tools)")
        answer = subprocess.run(
            ["redis-server", "--version"],
            executable=program,
            capture_output=True,
            text=True,
            check=True,
        )
        return version_in(answer.stdout)

    def initialise(self) -> None:
        """Give the program the name by which it is a server."""
        (self.folder / "run" / "redis-server").symlink_to(
            find_program("redis-check-rdb") or "redis-check-rdb"
        )

    def command(self) -> list[str]:
        """Return redis-server with its settings, from a file: they hold the password."""
        options = self.folder / "redis.conf"
        lines = (
            "bind 127.0.0.1",
            f"port {self.port}",
            f"unixsocket {self._socket}",
            f"dir {self.folder}/data",
            f"requirepass {self.password}",
            "appendonly yes",
            "appendfsync everysec",
            'save ""',
        )
        self.write(options, "\n".join(lines))
        return [str(self.folder / "run" / "redis-server"), str(options)]

    def ready(self) -> bool:
        """It answers before the login too, with a refusal."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(self._socket))
                probe.sendall(b"PING\r\n")
                return probe.recv(16).startswith(b"-NOAUTH")
            except OSError:
                return False

    def url(self, database: str) -> str:
        """Return the URL of a numbered database."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/{database}"

    @property
    def _socket(self) -> Path:
        return self.folder / "run" / "redis.sock"
