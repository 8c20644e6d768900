"""I5: index keys and row formats of InnoDB, and a first migration that ended half-way."""

from __future__ import annotations

import re

import pytest
from django.apps import apps
from django.db import OperationalError, ProgrammingError, connections, migrations
from django.db.migrations.executor import MigrationExecutor

from tests import markdown
from tests.core.arrange import run

pytestmark = [pytest.mark.usefixtures("queue_db"), pytest.mark.only_on("mariadb", "mysql")]

SIZES = {
    "bigint": 8,
    "int": 4,
    "smallint": 2,
    "tinyint": 1,
    "datetime": 8,
    "double": 8,
    "binary": 16,
}


def keys(connection) -> dict[str, int]:
    """Return the most bytes that a key of each index of ours takes, NULL and length bytes too."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT CONCAT(s.table_name, '.', s.index_name), c.data_type, "
            "c.character_octet_length, c.is_nullable FROM information_schema.statistics s "
            "JOIN information_schema.columns c ON c.table_schema = s.table_schema "
            "AND c.table_name = s.table_name AND c.column_name = s.column_name "
            r"WHERE s.table_schema = DATABASE() AND s.table_name LIKE 'leasequeue\_%%'"
        )
        found: dict[str, int] = {}
        for index, kind, octets, nullable in cursor.fetchall():
            size = octets + 2 if kind == "varchar" else SIZES[kind]
            found[index] = found.get(index, 0) + int(size) + (nullable == "YES")
    return found


def test_every_key_fits_3072_bytes(connection):
    found = keys(connection)
    assert len(found) > 15
    assert max(found.values()) <= 3072
    text = " ".join(markdown.read("operations.md").split())
    assert f"the largest key is {max(found.values())} bytes" in text


def created(connection, table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW CREATE TABLE {table}")
        return str(cursor.fetchone()[1])


def test_which_tables_need_the_dynamic_row_format(connection):
    """The refusal is the server's, before a row is in the table: 1071 or 1709."""
    refused: dict[str, int] = {}
    for model in apps.get_app_config("leasequeue").get_models():
        table = model._meta.db_table
        sql = created(connection, table).replace(table, "row_format_probe", 1)
        sql = re.sub(r"CONSTRAINT `\w+` CHECK", "CHECK", sql)
        try:
            run(connection, f"{sql} ROW_FORMAT=COMPACT".replace("%", "%%"))
        except OperationalError as error:
            refused[table] = error.args[0]
        finally:
            run(connection, "DROP TABLE IF EXISTS row_format_probe")
    assert "leasequeue_job" in refused
    assert set(refused.values()) <= {1071, 1709}
    assert "1071 or 1709" in markdown.read("operations.md")


def test_each_step_of_the_first_migration_is_one_table():
    """MySQL commits each by itself: there is no step that changes rows as well."""
    executor = MigrationExecutor(connections["default"])
    ours = [m for (app, _name), m in executor.loader.disk_migrations.items() if app == "leasequeue"]
    for migration in ours:
        assert {type(step) for step in migration.operations} <= {migrations.CreateModel}


def test_a_migration_that_ended_half_way_is_begun_again(connection):
    """DDL is not undone: as operations.md says, drop what is there, and migrate."""
    tables = [m._meta.db_table for m in apps.get_app_config("leasequeue").get_models()]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'leasequeue'")
    drop(connection, tables[1:])
    with pytest.raises((OperationalError, ProgrammingError), match="already exists"):
        migrate(connection)
    drop(connection, tables)
    migrate(connection)
    assert set(tables) <= set(connection.introspection.table_names())


def drop(connection, tables):
    for table in tables:
        run(connection, f"DROP TABLE IF EXISTS {table}")


def migrate(connection):
    executor = MigrationExecutor(connection)
    executor.migrate([key for key in executor.loader.graph.leaf_nodes() if key[0] == "leasequeue"])
