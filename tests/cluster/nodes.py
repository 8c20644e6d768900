"""The nodes of the cluster that `make clusters` started: asked, killed, one of them the writer."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tests.process.processes import wait_gone

ASK_SECONDS = 2
WRITABLE = {
    "galera": "SHOW STATUS LIKE 'wsrep_ready'",
    "group-replication": (
        "SELECT 'writable', IF(@@super_read_only, 'OFF', 'ON')"
        " FROM performance_schema.replication_group_members"
        " WHERE member_id = @@server_uuid AND member_state = 'ONLINE'"
    ),
}
SIZE = {
    "galera": "SHOW STATUS LIKE 'wsrep_cluster_size'",
    "group-replication": (
        "SELECT 'size', COUNT(*) FROM performance_schema.replication_group_members"
        " WHERE member_state = 'ONLINE'"
    ),
}
ALONE = {
    "galera": "SHOW STATUS LIKE 'wsrep_cluster_status'",
    "group-replication": (
        "SELECT 'alone', COUNT(*) FROM performance_schema.replication_group_members"
        " WHERE member_state = 'UNREACHABLE'"
    ),
}


@dataclass(frozen=True)
class Node:
    """One server, as a proxy's health check sees it."""

    kind: str
    port: int
    pid: int
    login: tuple[str, str]

    def ask(self, sql: str) -> Sequence[Any]:
        """Return the rows that it answers. Raises the driver's errors."""
        import MySQLdb  # which environments for other databases do not have

        user, password = self.login
        connected = MySQLdb.connect(
            host="127.0.0.1",
            port=self.port,
            user=user,
            password=password,
            connect_timeout=ASK_SECONDS,
            read_timeout=30,
            autocommit=True,
        )
        with closing(connected) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(sql)
            rows: Sequence[Any] = cursor.fetchall()
            return rows

    def is_writable(self) -> bool:
        """Tell whether it takes writes now."""
        return self._says(WRITABLE) == ["ON"]

    def sees(self) -> int:
        """Return of how many nodes the cluster is, as this one knows it."""
        return int(next(iter(self._says(SIZE)), 0))

    def is_alone(self) -> bool:
        """Tell whether it knows that it sees no majority."""
        return self._says(ALONE) in (["non-Primary"], ["2"])

    def _says(self, sql: dict[str, str]) -> list[Any]:
        import MySQLdb

        try:
            return [str(row[1]) for row in self.ask(sql[self.kind])]
        except MySQLdb.Error:
            return []

    def pause(self) -> None:
        """Let it hang, as behind a cut network."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it as a power failure would."""
        os.kill(self.pid, signal.SIGKILL)
        wait_gone(self.pid)


def nodes_from(told: str, kind: str, login: tuple[str, str]) -> list[Node]:
    """Return the nodes of `LEASEQUEUE_TEST_NODES`: "port:pid port:pid …"."""
    pairs = [word.split(":") for word in told.split()]
    return [Node(kind, int(port), int(pid), login) for port, pid in pairs]
