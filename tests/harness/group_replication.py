"""A cluster of MySQL servers by Group Replication, over the server's own port only."""

from __future__ import annotations

from tests.harness import mysql_programs
from tests.harness.cluster import NODES, Cluster, wait_for
from tests.harness.mysql import MySQL
from tests.harness.server import USER, free_port

OPTIONS = """\
performance_schema = ON
server_id = {number}
report_host = 127.0.0.1
report_port = {port}
log_bin = binlog
sync_binlog = 0
relay_log = relay
gtid_mode = ON
enforce_gtid_consistency = ON
innodb_redo_log_capacity = 64M
plugin_load_add = group_replication.so
loose_group_replication_group_name = 8a94f357-0000-4000-8000-000000000001
loose_group_replication_communication_stack = MYSQL
loose_group_replication_local_address = 127.0.0.1:{port}
loose_group_replication_group_seeds = {seeds}
loose_group_replication_start_on_boot = OFF
loose_group_replication_single_primary_mode = OFF
# Without TLS the password of the transfer goes by the donor's public key.
loose_group_replication_recovery_get_public_key = ON
# By default a node is expelled after 5 seconds of suspicion and 5 more.
loose_group_replication_member_expel_timeout = 0
loose_group_replication_exit_state_action = READ_ONLY
"""

STATE = """\
SELECT COUNT(*) FROM performance_schema.replication_group_members
WHERE member_state = 'ONLINE' AND member_id = @@server_uuid"""


class GroupNode(MySQL):
    """One node. All are made alike, and without a log of that: none has what another lacks."""

    name = "group"
    disposable = ""

    def __init__(self, number: int, password: str) -> None:
        super().__init__()
        self.number = number
        self.password = password
        self.port = free_port()
        self.seeds: list[int] = []

    def initialise(self) -> None:
        """Make the system tables and the account."""
        seeds = ",".join(f"127.0.0.1:{port}" for port in self.seeds)
        self.options = MySQL.options + OPTIONS.format(
            number=self.number, port=self.port, seeds=seeds
        )
        arguments = self.arguments()
        mysqld = mysql_programs.program("mysqld")
        self.run("initialise", [*mysqld, *arguments, "--initialize-insecure", "--disable-log-bin"])

    def command(self) -> list[str]:
        """Return mysqld with its files; the account is there already."""
        return [*mysql_programs.program("mysqld"), self.arguments()[0]]

    def load_time_zones(self) -> None:
        """No test on a cluster asks for zones."""

    def join(self, *, first: bool) -> None:
        """Become a member of the group, or be its first one."""
        start = f"START GROUP_REPLICATION USER='{USER}', PASSWORD='{self.password}';"
        if first:
            bootstrap = "SET GLOBAL group_replication_bootstrap_group ="
            start = f"{bootstrap} ON; {start} {bootstrap} OFF;"
        self.sql(start)
        wait_for(f"node {self.number}", self, lambda: self.sql(STATE) == "1")


class GroupReplication(Cluster):
    """Three nodes, all primaries; a test may ask the group for a single one."""

    name = "group-replication"

    def find(self) -> str:
        """Fetch the programs unless they are in the cache, and return mysqld's version."""
        return MySQL().find()

    def form(self) -> None:
        """Start all nodes and let them join one after the other."""
        nodes = [GroupNode(n + 1, self.password) for n in range(NODES)]
        self.nodes = nodes
        for node in nodes:
            node.seeds = [each.port for each in nodes]
            node.start()
        for node in nodes:
            node.join(first=node is nodes[0])
