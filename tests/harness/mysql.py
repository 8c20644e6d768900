"""The real MySQL, run from packages that are unpacked in a cache folder and not installed."""

from __future__ import annotations

import subprocess

from tests.harness import mysql_programs
from tests.harness.mysql_family import MySQLFamily
from tests.harness.server import version_in


class MySQL(MySQLFamily):
    """A throwaway MySQL."""

    name = "mysql"

    # The packages' own places do not exist here, so each folder has to be named.
    options = f"""\
basedir = {mysql_programs.ROOT}/usr
lc_messages_dir = {mysql_programs.ROOT}/usr/share/mysql
character_sets_dir = {mysql_programs.ROOT}/usr/share/mysql/charsets
plugin_dir = {mysql_programs.ROOT}/usr/lib/mysql/plugin
secure_file_priv = NULL
mysqlx = OFF
"""
    disposable = "disable_log_bin\ninnodb_redo_log_capacity = 64M\n"
    durably = "server_id = 1\ninnodb_redo_log_capacity = 256M\n"

    def find(self) -> str:
        """Fetch the programs unless they are in the cache, and return mysqld's version."""
        mysql_programs.ensure()
        command = [*mysql_programs.program("mysqld"), "--no-defaults", "--version"]
        # The unpacked path that the program says first may hold figures too.
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return version_in(answer.partition(" Ver ")[2])

    def initialise(self) -> None:
        """Make the system tables."""
        self.arguments()
        mysqld, options = mysql_programs.program("mysqld"), f"--defaults-file={self.option_file}"
        self.run("initialise", [*mysqld, options, "--initialize-insecure"])

    def command(self) -> list[str]:
        """Return mysqld with its files."""
        return [*mysql_programs.program("mysqld"), *self.arguments()]

    def client(self) -> list[str] | None:
        """Return MySQL's own client."""
        return mysql_programs.program("mysql")

    def zone_converter(self) -> list[str] | None:
        """Return MySQL's own converter."""
        return mysql_programs.program("mysql_tzinfo_to_sql")
