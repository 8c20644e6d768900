"""A throwaway database server that has a certificate of a throwaway authority."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.harness.mariadb import MariaDB
from tests.harness.mysql import MySQL
from tests.harness.mysql_family import MySQLFamily
from tests.harness.postgres import PostgreSQL
from tests.harness.server import Server

#: The one address that the certificate is for; the server listens on the other one, too.
NAMED, UNNAMED = "127.0.0.1", "127.0.0.2"
_SIGN = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def authority(folder: Path, name: str) -> Path:
    """Make a certificate authority and return its certificate; the key lies beside it."""
    _openssl(
        *_SIGN,
        *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
        *("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")),
    )
    return folder / f"{name}.pem"


def certify(server: Server, ca: Path) -> None:
    """Give the server a key and a certificate for NAMED, signed by the authority."""
    key, certificate = server.folder / "server.key", server.folder / "server.pem"
    _openssl(
        *_SIGN,
        *("-nodes", "-days", "2", "-subj", f"/CN={NAMED}", "-addext", f"subjectAltName=IP:{NAMED}"),
        *("-addext", "basicConstraints=critical,CA:FALSE"),
        *("-CA", str(ca), "-CAkey", str(ca.with_suffix(".key"))),
        *("-keyout", str(key), "-out", str(certificate)),
    )
    for file in (key, certificate):
        file.chmod(0o600)
        server.give(file)


def _openssl(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class _Tls(MySQLFamily):
    """Options of both: TLS or nothing, on both addresses."""

    ca: Path

    def initialise(self) -> None:
        certify(self, self.ca)
        self.options += (
            f"ssl_cert = {self.folder}/server.pem\nssl_key = {self.folder}/server.key\n"
            f"bind_address = {NAMED},{UNNAMED}\nrequire_secure_transport = ON\n"
        )
        super().initialise()

    def load_time_zones(self) -> None:
        """They take longer than all the rest, and nothing here needs them."""


class TlsMariaDB(_Tls, MariaDB):
    pass


class TlsMySQL(_Tls, MySQL):
    pass


class TlsPostgreSQL(PostgreSQL):
    ca: Path

    def initialise(self) -> None:
        certify(self, self.ca)
        super().initialise()
        rules = self.folder / "data" / "pg_hba.conf"
        self.write(rules, "local all all trust\nhostssl all all all scram-sha-256\n")

    def command(self) -> list[str]:
        files = {"ssl_cert_file": "server.pem", "ssl_key_file": "server.key"}
        settings = [f"{name}={self.folder}/{file}" for name, file in files.items()]
        settings += ["ssl=on", f"listen_addresses={NAMED},{UNNAMED}"]
        return [*super().command(), *(word for one in settings for word in ("-c", one))]


SERVERS = {"mariadb": TlsMariaDB, "mysql": TlsMySQL, "postgres": TlsPostgreSQL}
