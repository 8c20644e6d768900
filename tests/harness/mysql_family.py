"""What MariaDB and MySQL have in common: option file, first statements, greeting, time zones."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

from tests.harness.problems import Problem, say
from tests.harness.server import USER, Server

ZONES = Path("/usr/share/zoneinfo")

COMMON_OPTIONS = """\
datadir = {folder}/data
socket = {folder}/run/mysql.sock
pid_file = {folder}/run/server.pid
tmpdir = {folder}/run
bind_address = 127.0.0.1
port = {port}
skip_name_resolve = ON
character_set_server = utf8mb4
max_connections = 300
innodb_lock_wait_timeout = 10
performance_schema = OFF
"""

#: Fast: a crash of the machine may lose or break the data.
DISPOSABLE = """\
innodb_buffer_pool_size = 128M
innodb_flush_log_at_trx_commit = 0
innodb_doublewrite = OFF
"""

#: For benchmarks.
DURABLE = """\
log_bin = binlog
sync_binlog = 1
innodb_buffer_pool_size = 1G
innodb_flush_log_at_trx_commit = 1
innodb_doublewrite = ON
innodb_flush_method = O_DIRECT
"""

#: The one account is ours, with a password: others on this machine can reach the port too.
FIRST_STATEMENTS = """\
CREATE USER IF NOT EXISTS '{user}'@'%' IDENTIFIED BY '{password}';
GRANT ALL PRIVILEGES ON *.* TO '{user}'@'%' WITH GRANT OPTION;
DROP USER IF EXISTS 'root'@'localhost', 'root'@'127.0.0.1', 'root'@'::1';
"""


class MySQLFamily(Server):
    """A server that speaks MySQL's protocol."""

    scheme = "mysql"
    #: Of one product: always, and beside the disposable or the durable profile.
    options: str
    disposable: str
    durably: str

    def client(self) -> list[str] | None:
        """Return the command that runs the command-line client, or None if there is none."""
        raise NotImplementedError

    def zone_converter(self) -> list[str] | None:
        """Return the command that turns zone files into SQL, or None if there is none."""
        raise NotImplementedError

    @property
    def option_file(self) -> Path:
        """The server's only option file."""
        return self.folder / "my.cnf"

    @property
    def socket(self) -> Path:
        """The private socket, in a folder that only the server's user can enter."""
        return self.folder / "run" / "mysql.sock"

    def arguments(self) -> list[str]:
        """Write the two files the server starts from, and return its arguments."""
        statements = FIRST_STATEMENTS.format(user=USER, password=self.password)
        self.write(self.folder / "first.sql", statements)
        options = COMMON_OPTIONS.format(folder=self.folder, port=self.port) + self.options
        options += DURABLE + self.durably if self.durable else DISPOSABLE + self.disposable
        self.write(self.option_file, f"[mysqld]\n{options}")
        return [f"--defaults-file={self.option_file}", f"--init-file={self.folder}/first.sql"]

    def ready(self) -> bool:
        """The first packet of a server that takes connections is its greeting, protocol 10."""
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(5)
            try:
                probe.connect(str(self.socket))
                return probe.recv(5)[4:] == b"\x0a"
            except OSError:
                return False

    def load_time_zones(self) -> None:
        """CONVERT_TZ, and with it Django's Trunc in a zone, needs the tables."""
        converter, client = self.zone_converter(), self.client()
        if not converter or not client:
            say(f"{self.name}: no program that loads time zones, the tables stay empty")
            return
        # Some releases hold each zone three times over; `posix` is all of them once.
        folder = ZONES / "posix" if (ZONES / "posix").is_dir() else ZONES
        zones = subprocess.run([*converter, str(folder)], capture_output=True, check=True).stdout
        # MySQL's converter leaves a name bare that is a word of SQL to MariaDB.
        answer = self._ask(client, "mysql", zones.replace(b" Offset,", b" `Offset`,"))
        if answer.returncode != 0:
            raise Problem(f"{self.name}: time zones not loaded: {answer.stderr.decode()}")

    def sql(self, statements: str) -> str:
        """Run statements and return the last one's values, tabs between. Problem when one fails."""
        answer = self._ask(self.client() or [], "mysql", statements.encode())
        if answer.returncode != 0:
            raise Problem(f"{self.name}: {statements}: {answer.stderr.decode()}")
        return answer.stdout.decode().strip()

    def _ask(
        self, client: list[str], database: str, statements: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        login = ["--no-defaults", "--protocol=TCP", "--host=127.0.0.1", f"--port={self.port}"]
        return subprocess.run(
            [*client, *login, f"--user={USER}", "--batch", "--skip-column-names", database],
            input=statements,
            env={**os.environ, "MYSQL_PWD": self.password},
            capture_output=True,
            check=False,
        )
