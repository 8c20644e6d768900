"""MariaDB from the system's own packages; the -core ones hold programs only, no service."""

from __future__ import annotations

import subprocess

from tests.harness import mysql_programs
from tests.harness.mysql_family import MySQLFamily
from tests.harness.packages import find_program
from tests.harness.problems import Problem
from tests.harness.server import version_in


class MariaDB(MySQLFamily):
    """A throwaway MariaDB."""

    name = "mariadb"
    options = "collation_server = utf8mb4_general_ci\n"
    disposable = "skip_log_bin\ninnodb_log_file_size = 64M\n"
    durably = "binlog_format = ROW\nserver_id = 1\ninnodb_log_file_size = 256M\n"

    def find(self) -> str:
        """Return the version of mariadbd."""
        program = find_program("mariadbd")
        if not program:
            raise Problem("mariadbd is not installed (apt-get install mariadb-server-core)")
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        return version_in(answer.stdout)

    def initialise(self) -> None:
        """Make the system tables."""
        self.run(
            "initialise",
            [
                find_program("mariadb-install-db") or "mariadb-install-db",
                "--no-defaults",
                f"--datadir={self.folder}/data",
                "--skip-test-db",
                "--skip-name-resolve",
                "--auth-root-authentication-method=normal",
            ],
        )

    def command(self) -> list[str]:
        """Return mariadbd with its files."""
        return [find_program("mariadbd") or "mariadbd", *self.arguments()]

    def client(self) -> list[str] | None:
        """Return the client of mariadb-client-core."""
        program = find_program("mariadb")
        return [program] if program else None

    def zone_converter(self) -> list[str] | None:
        """Return MariaDB's own converter, which is in a big package, or MySQL's if at hand."""
        program = find_program("mariadb-tzinfo-to-sql")
        return [program] if program else mysql_programs.unpacked("mysql_tzinfo_to_sql")
