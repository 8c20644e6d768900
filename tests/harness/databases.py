"""The four databases of the suite: which can be had here, and where each one listens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.harness import packages
from tests.harness.interpreters import Interpreter
from tests.harness.mariadb import MariaDB
from tests.harness.mysql import MySQL
from tests.harness.postgres import PostgreSQL
from tests.harness.problems import Problem, say
from tests.harness.server import Server, parent_folder

SERVERS: dict[str, type[Server]] = {"mariadb": MariaDB, "mysql": MySQL, "postgres": PostgreSQL}
NAMES = ("sqlite", *SERVERS)


class Databases:
    """The chosen databases, from looking for programs to servers that answer."""

    def __init__(self, names: Iterable[str], *, durable: bool = False) -> None:
        self.names = list(names)
        self.durable = durable
        self.missing: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self._servers: dict[str, Server] = {}
        self._sqlite_folder = ""

    @property
    def present(self) -> list[str]:
        """The names of the databases that tests can run on."""
        return [name for name in self.names if name not in self.missing]

    def prepare(self, pythons: list[Interpreter]) -> None:
        """Install what is missing, and note for each database that cannot be had why."""
        wanted = [packages.missing_for(name, pythons) for name in self.names]
        try:
            packages.install(list(dict.fromkeys(name for names in wanted for name in names)))
        except Problem as problem:
            say(str(problem))
        for name in self.names:
            if still := packages.missing_for(name, pythons):
                self.missing[name] = f"not installed: {' '.join(still)}"
            else:
                self._find(name)

    def _find(self, name: str) -> None:
        if name == "sqlite":
            self.labels[name] = "SQLite"
        elif external_url(name):
            self.labels[name] = f"{name} at {variable(name)}"
        else:
            server = SERVERS[name](durable=self.durable)
            try:
                self.labels[name] = f"{type(server).__name__} {server.find()}"
            except Problem as problem:
                self.missing[name] = str(problem)
            else:
                self._servers[name] = server

    def start(self, stack: ExitStack, *, keep: bool = False) -> None:
        """Start the servers that are ours; the stack stops them again, unless they are kept."""
        # On the same disk as the servers' data.
        folder = parent_folder() if self.durable else None
        self._sqlite_folder = stack.enter_context(tempfile.TemporaryDirectory(dir=folder))
        for name, server in self._servers.items():
            if not keep:
                stack.callback(server.stop)
            try:
                server.start(dies_with_us=not keep)
            except Problem as problem:
                self.missing[name] = str(problem)

    def url(self, name: str, database: str) -> str:
        """Return the DATABASE_URL of one database, by its name on the server or as a file."""
        if name == "sqlite":
            return f"sqlite:///{Path(self._sqlite_folder, database)}.sqlite3"
        if url := external_url(name):
            parts = urlsplit(url)
            return urlunsplit(parts._replace(path=f"{parts.path}_{database}"))
        return self._servers[name].url(database)


def variable(name: str) -> str:
    """Return the environment variable that names a server to use instead of a throwaway one."""
    return f"LEASEQUEUE_TEST_{name.upper()}_URL"


def external_url(name: str) -> str | None:
    """Return the URL of the server to use instead of a throwaway one."""
    return os.environ.get(variable(name)) or None
