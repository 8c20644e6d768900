"""Which statements may end a transaction without a word, or the guard: all but those known."""

from __future__ import annotations

import pytest

from django_leasequeue.core.guard import _HARMLESS

HARMLESS = [
    "SELECT 1",
    "  insert INTO t (a) VALUES (%s)",
    "\n\tUPDATE t SET a = %s WHERE b = %s;",
    "DELETE FROM t",
    "REPLACE INTO t VALUES (1)",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "RELEASE SAVEPOINT `s1_x1`",
    "ROLLBACK TO SAVEPOINT `s1_x1`",
]
DOUBTFUL = [
    "SAVEPOINT `s1_x1`",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "START TRANSACTION",
    "CREATE TABLE t (a int)",
    "TRUNCATE t",
    "CALL procedure()",
    "SET autocommit = 1",
    "LOCK TABLES t WRITE",
    "SELECT 1; DROP TABLE t",
    "INSERT INTO t VALUES (';')",
    "/* a hint */ SELECT 1",
    "SELECTED",
    "ROLLBACK TO",
    "",
]


@pytest.mark.parametrize("sql", HARMLESS)
def test_harmless(sql):
    assert _HARMLESS.match(sql)


@pytest.mark.parametrize("sql", DOUBTFUL)
def test_doubtful(sql):
    assert not _HARMLESS.match(sql)
