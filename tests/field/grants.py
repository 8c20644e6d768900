"""The accounts of docs/deployment/grants-*.sql, made for a test: the very statements, renamed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.markdown import DOCS

NAMES = ("migrator", "worker", "enqueuer", "operator", "pruner", "monitor")
FILES = {"mysql": "grants-mysql.sql", "postgresql": "grants-postgresql.sql"}


@dataclass(frozen=True)
class Accounts:
    """Accounts of a database server, each of one duty."""

    database: str
    vendor: str

    @property
    def prefix(self) -> str:
        """What "shop" is called here: accounts belong to a whole server, which tests may share."""
        return f"lq{os.getpid()}"

    def user(self, duty: str) -> str:
        return f"{self.prefix}_{duty}"

    def password(self, duty: str) -> str:
        return f"change-me-{NAMES.index(duty) + 1}"

    def statements(self) -> list[str]:
        """Return the file's statements for this database; tests' servers may have no TLS."""
        text = (DOCS / "deployment" / FILES[self.vendor]).read_text(encoding="utf-8")
        text = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
        text = re.sub(r"\bshop_", f"{self.prefix}_", text)
        text = re.sub(r"\bshop\b", connections["default"].ops.quote_name(self.database), text)
        text = text.replace("'10.0.0.%'", "'%'").replace(" REQUIRE SSL", "")
        return [" ".join(statement.split()) for statement in text.split(";") if statement.strip()]

    def first(self) -> list[str]:
        """Return the statements of the migrator, which need no table yet."""
        return [one for one in self.statements() if self.user("migrator") in one]


@contextmanager
def made(connection: BaseDatabaseWrapper, accounts: Accounts, statements: list[str]):
    """Make accounts, yield, and drop whatever was made, also when a statement is refused."""
    try:
        run(connection, statements)
        yield
    finally:
        for duty in NAMES:
            run(connection, _drop(connection, accounts, accounts.user(duty)))


def run(connection: BaseDatabaseWrapper, statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _drop(connection: BaseDatabaseWrapper, accounts: Accounts, user: str) -> list[str]:
    if accounts.vendor == "mysql":
        return [f"DROP USER IF EXISTS '{user}'@'%'"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [user])
        return [f"DROP OWNED BY {user}", f"DROP ROLE {user}"] if cursor.fetchone() else []


@contextmanager
def aliases(accounts: Accounts) -> Iterator[None]:
    """Let each duty be an alias of DATABASES: the same database, under that account."""
    ours = {
        duty: {
            **connections.settings["default"],
            "USER": accounts.user(duty),
            "PASSWORD": accounts.password(duty),
        }
        for duty in NAMES
    }
    connections.settings.update(ours)
    try:
        yield
    finally:
        for duty in NAMES:
            connections[duty].close()
            del connections[duty]
            del connections.settings[duty]
