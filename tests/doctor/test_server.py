"""Engines, isolation, character sets, modes, log format: on real servers, by sessions of our own.

Variables that only an administrator may set for all are given as a server would tell them.
"""

from __future__ import annotations

import pytest

from django_leasequeue.doctor import bounds, engines, isolation, routers, texts
from tests.core.arrange import run
from tests.doctor.asking import ids, only

MYSQL = pytest.mark.only_on("mariadb", "mysql")
SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def test_a_sound_server(case):
    sound = case()
    for diagnosis in (
        engines.skip_locked,
        engines.log_format,
        engines.default_engine,
        engines.table_engines,
        engines.read_only,
        isolation.isolation,
        texts.character_sets,
        texts.column_sets,
        texts.modes,
        routers.alias_in_use,
    ):
        assert list(diagnosis(sound)) == [], diagnosis


def with_variables(case, **variables):
    broken = case()
    vars(broken)["variables"] = {**broken.variables, **variables}
    return broken


@SERVERS
def test_no_skip_locked(case, monkeypatch):
    broken = case()
    features = broken.connection.features
    monkeypatch.setattr(features, "has_select_for_update_skip_locked", False)
    assert ids(engines.skip_locked(broken)) == ["E002"]


@MYSQL
@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
def test_another_default_engine(case, db_kind, engine):
    """A24: the server would make tables without transactions."""
    if engine == "Aria" and db_kind == "mysql":
        pytest.skip("is MariaDB's own")
    found = only(engines.default_engine, case(f"SET default_storage_engine = {engine}"))
    assert ids([found]) == ["E012"]
    assert engine in found.what


@MYSQL
def test_a_table_of_another_engine(case, changed):
    """A24: each table of ours is looked at."""
    changed(
        "ALTER TABLE leasequeue_deadgroup ENGINE = MyISAM",
        "ALTER TABLE leasequeue_deadgroup ENGINE = InnoDB",
    )
    found = only(engines.table_engines, case())
    assert ids([found]) == ["E011"]
    assert "leasequeue_deadgroup (MyISAM)" in found.what
    assert "leasequeue_job" not in found.what


@MYSQL
def test_statements_in_the_binary_log(case):
    logs = {"log_bin": "ON", "binlog_format": "STATEMENT"}
    assert ids(engines.log_format(with_variables(case, **logs))) == ["E010"]
    logs["binlog_format"] = "MIXED"
    assert list(engines.log_format(with_variables(case, **logs))) == []


def test_a_server_that_takes_no_writes(case, db_kind):
    if db_kind in ("mariadb", "mysql"):
        broken = with_variables(case, read_only="ON")
    elif db_kind == "postgres":
        broken = case("SET default_transaction_read_only = on")
    else:
        broken = case("PRAGMA query_only = 1")
    assert ids(engines.read_only(broken)) == ["E009"]


@SERVERS
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_another_isolation_level(case, level):
    found = only(isolation.isolation, case(isolation=level))
    assert ids([found]) == ["W007"]
    assert level.upper() in found.what


@SERVERS
def test_read_committed(case):
    assert list(isolation.isolation(case(isolation="read committed"))) == []


@MYSQL
def test_the_level_of_the_server_counts_where_the_project_has_none(case):
    assert ids(isolation.isolation(case(isolation_level=None))) == ["W007"]


@MYSQL
def test_a_narrow_connection(case):
    """D11: OPTIONS charset 'utf8'."""
    found = only(texts.character_sets, case(charset="utf8mb3"))
    assert ids([found]) == ["W008"]
    assert "the connection has utf8mb3" in found.what
    assert "the database" not in found.what


@MYSQL
def test_a_narrow_database(connection, case):
    """D11: a database, and a table in it, of utf8mb3."""
    name = connection.settings_dict["NAME"]
    run(connection, f"ALTER DATABASE `{name}` CHARACTER SET utf8mb3")
    try:
        run(connection, "ALTER TABLE leasequeue_job MODIFY leased_by varchar(255) CHARSET utf8mb3")
        narrow = case()
        assert "the database has utf8mb3" in only(texts.character_sets, narrow).what
        found = only(texts.column_sets, narrow)
        assert ids([found]) == ["W009"]
        assert found.what.count("leasequeue_") == 1
        assert "leasequeue_job.leased_by (utf8mb3)" in found.what
    finally:
        run(connection, f"ALTER DATABASE `{name}` CHARACTER SET utf8mb4")
        run(
            connection,
            "ALTER TABLE leasequeue_job MODIFY leased_by varchar(255) CHARSET utf8mb4 "
            "NOT NULL DEFAULT ''",
        )


@pytest.mark.only_on("postgres")
def test_a_narrow_encoding(case):
    found = only(texts.character_sets, with_variables(case, server_encoding="LATIN1"))
    assert "the database has LATIN1" in found.what


@MYSQL
@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ("", ["W010"]),
        ("STRICT_ALL_TABLES", []),
        ("STRICT_TRANS_TABLES,HIGH_NOT_PRECEDENCE", ["W011"]),
        ("HIGH_NOT_PRECEDENCE", ["W010", "W011"]),
    ],
)
def test_modes(case, modes, expected):
    assert ids(texts.modes(case(f"SET sql_mode = '{modes}'"))) == expected


@SERVERS
def test_waits_for_locks(case, db_kind):
    name = "lock_timeout" if db_kind == "postgres" else "innodb_lock_wait_timeout"
    unit = 1000 if db_kind == "postgres" else 1
    assert ids(bounds.lock_waits(case(f"SET {name} = {60 * unit}"))) == ["I002"]
    assert list(bounds.lock_waits(case(f"SET {name} = {59 * unit}"))) == []


@pytest.mark.only_on("postgres")
def test_a_wait_without_end(case):
    assert "without end" in only(bounds.lock_waits, case("SET lock_timeout = 0")).what


def test_which_of_several_databases(case, settings, monkeypatch):
    """G10: said only where there is a doubt."""
    monkeypatch.setitem(settings.DATABASES, "other", {})
    found = only(routers.alias_in_use, case())
    assert ids([found]) == ["I001"]
    assert "in the database 'default'" in found.what
    assert "'other'" in found.what
