"""TLS with verification: a worker takes the right server, and no other one."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.field.tls import NAMED, SERVERS, UNNAMED, authority
from tests.harness.problems import Problem
from tests.harness.server import Server

pytestmark = [
    pytest.mark.only_on("mariadb", "mysql", "postgres"),
    pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl"),
]
#: As in docs/privileges.md.
VERIFIED = {
    "mariadb": "ssl_mode=VERIFY_IDENTITY&ssl_ca={ca}",
    "mysql": "ssl_mode=VERIFY_IDENTITY&ssl_ca={ca}",
    "postgres": "sslmode=verify-full&sslrootcert={ca}",
}
MAINTENANCE = {"mariadb": "mysql", "mysql": "mysql", "postgres": "postgres"}


@dataclass(frozen=True)
class Place:
    """The server with a certificate, and how to reach it."""

    server: Server
    kind: str
    folder: Path

    def environment(self, host: str, ca: str) -> dict[str, str]:
        options = VERIFIED[self.kind].format(ca=self.folder / f"{ca}.pem")
        url = self.server.url(MAINTENANCE[self.kind]).replace(NAMED, host)
        return {"DATABASE_URL": f"{url}?{options}"}


@pytest.fixture(scope="module")
def place(db_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if db_kind not in SERVERS:
        pytest.skip("is about servers")
    server: Server = SERVERS[db_kind]()
    folder = tmp_path_factory.mktemp("tls")
    try:
        server.find()
    except Problem as problem:
        pytest.skip(str(problem))
    vars(server)["ca"] = authority(folder, "ours")
    authority(folder, "another")
    server.start()
    yield Place(server, db_kind, folder)
    server.stop()


def test_the_right_server(place, queue_db, manage, worker_process):
    environment = place.environment(NAMED, "ours")
    assert manage("migrate", "leasequeue", "-v", "0", env=environment).returncode == 0
    worker = worker_process("--drain", env=environment)
    assert worker.wait() == 0, worker.log()


@pytest.mark.parametrize(
    ("host", "ca"), [(NAMED, "another"), (UNNAMED, "ours")], ids=["another CA", "another host name"]
)
def test_another_server_is_refused(
    place: Place, queue_db, worker_process: Callable, host: str, ca: str
):
    worker = worker_process("--drain", env=place.environment(host, ca))
    told = "database_lost" if place.kind == "postgres" else "worker_fatal"
    error = worker.wait_event(told)["error"]
    assert error.startswith("OperationalError: no verified TLS connection: check the CA file")
    if place.kind == "postgres":  # libpq does not tell for ever from for now: it tries again
        worker.signal(signal.SIGTERM)
    assert worker.wait() == (0 if place.kind == "postgres" else 1), worker.log()
