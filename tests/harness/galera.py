"""A Galera cluster of MariaDB: each node has every row, and a commit is certified by all.

The nodes begin as copies of one that has been a cluster by itself, so that what is missing is
little: it comes as an incremental transfer, and the programs that copy whole nodes are not needed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.harness.cluster import NODES, Cluster, wait_for
from tests.harness.mariadb import MariaDB
from tests.harness.packages import galera_provider
from tests.harness.problems import Problem
from tests.harness.server import free_port

#: Failures are seen within 1 to 3 seconds; by default it takes 5 to 15.
DETECTION = (
    "evs.keepalive_period=PT0.25S;evs.inactive_check_period=PT0.25S;"
    "evs.suspect_timeout=PT1S;evs.inactive_timeout=PT3S;evs.install_timeout=PT3S"
)

OPTIONS = """\
server_id = {number}
binlog_format = ROW
innodb_autoinc_lock_mode = 2
wsrep_on = ON
wsrep_provider = {provider}
wsrep_cluster_name = leasequeue
wsrep_cluster_address = gcomm://{members}
wsrep_node_name = node{number}
wsrep_node_address = 127.0.0.1:{group}
wsrep_node_incoming_address = 127.0.0.1:{port}
wsrep_sst_method = nothing
wsrep_sst_receive_address = 127.0.0.1:{group}
wsrep_slave_threads = 2
wsrep_provider_options = "gmcast.listen_addr=tcp://127.0.0.1:{group};\
ist.recv_addr=127.0.0.1:{transfer};gcache.size=64M;pc.recovery=FALSE;{detection}"
"""

#: A full state transfer is asked for before an incremental one is agreed on; it has nothing to do.
NO_TRANSFER = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --role) role=$2 ;;
    --datadir) data=$2 ;;
    --gtid) gtid=$2 ;;
    --bypass) incremental=yes ;;
    esac
    shift
done
if [ "$role" = donor ]; then
    [ "$incremental" ] || exit 1
    printf 'continue\\ndone %s\\n' "$gtid"
else
    echo "ready 127.0.0.1"
    sed -n 's/^uuid: *\\(.*\\)/\\1:0/p' "$data/grastate.dat"
fi
"""


class GaleraNode(MariaDB):
    """One node; with `template` it begins with the files of that node, which has ended."""

    name = "galera"
    disposable = "skip_log_bin\ninnodb_log_file_size = 64M\n"

    def __init__(self, number: int, password: str, template: GaleraNode | None = None) -> None:
        super().__init__()
        self.number = number
        self.password = password
        self.template = template
        self.bootstraps = template is None
        self.port, self.group, self.transfer = free_port(), free_port(), free_port()
        self.members: list[int] = []

    def initialise(self) -> None:
        """Copy the template's files, or make the system tables."""
        self._write_options()
        if self.template is None:
            super().initialise()
            return
        files = self.template.folder / "data"
        self.run("copy", ["cp", "-a", f"{files}/.", f"{self.folder}/data"])
        for name in ("galera.cache", "gvwstate.dat"):
            Path(self.folder, "data", name).unlink(missing_ok=True)

    def _write_options(self) -> None:
        members = ",".join(f"127.0.0.1:{port}" for port in self.members)
        self.options = MariaDB.options + OPTIONS.format(
            number=self.number,
            provider=galera_provider(),
            members=members,
            group=self.group,
            transfer=self.transfer,
            port=self.port,
            detection=DETECTION,
        )
        script = self.folder / "wsrep_sst_nothing"
        self.write(script, NO_TRANSFER)
        script.chmod(0o700)

    def command(self) -> list[str]:
        """Return mariadbd with its files, where it finds the transfer that does nothing."""
        path = f"PATH={self.folder}:{os.environ.get('PATH', '')}"
        command = super().command()
        if self.template is not None:
            # The account is in the files, and the statements would be the whole cluster's.
            command = [word for word in command if not word.startswith("--init-file")]
        return ["env", path, *command, *(["--wsrep-new-cluster"] if self.bootstraps else [])]

    def load_time_zones(self) -> None:
        """No test on a cluster asks for zones."""

    def synced(self) -> bool:
        """Tell whether it has all that the cluster has."""
        try:
            return "Synced" in self.sql("SHOW STATUS LIKE 'wsrep_local_state_comment'")
        except Problem:
            return False


class Galera(Cluster):
    """Three nodes, each of which can be written."""

    name = "galera"

    def find(self) -> str:
        """Return the version of mariadbd and look for the library."""
        if not galera_provider():
            raise Problem("Galera is not installed (apt-get install galera-4)")
        return MariaDB().find()

    def form(self) -> None:
        """Make a cluster of one, end it, and start three copies one after the other."""
        seed = GaleraNode(1, self.password)
        try:
            seed.start()
            wait_for("a cluster of one", seed, seed.synced)
            seed.end()
            nodes = [GaleraNode(n + 1, self.password, seed) for n in range(NODES)]
            nodes[0].bootstraps = True
            self.nodes = nodes
            for node in nodes:
                node.members = [each.group for each in nodes]
                node.start()
                wait_for(f"node {node.number}", node, node.synced)
        finally:
            seed.stop()
        sizes = [node.sql("SHOW STATUS LIKE 'wsrep_cluster_size'") for node in nodes]
        if not all(re.search(rf"\b{NODES}$", size) for size in sizes):
            raise Problem(f"the nodes do not see each other: {sizes}")
