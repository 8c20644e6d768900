"""A worker that could only be idle for ever says so and does not start."""

from __future__ import annotations

import copy

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections, transaction

from django_leasequeue import enqueue
from django_leasequeue.checks import check_database
from django_leasequeue.core.dialect import dialect_for
from django_leasequeue.registry import registry
from django_leasequeue.runtime.worker import Worker
from tests.core.arrange import job
from tests.faults import Fault, broken_everywhere, watching

SERVERS = pytest.mark.only_on("mariadb", "mysql", "postgres")


def test_inside_a_transaction(connection):
    """A16: it would see an old state for ever and commit nothing."""
    with transaction.atomic():
        with pytest.raises(ImproperlyConfigured, match="inside a transaction"):
            Worker()
        with pytest.raises(CommandError, match="inside a transaction"):
            call_command("runworker", "--drain")


def test_autocommit_off(connection, as_default, session):
    """A16: AUTOCOMMIT False in DATABASES: nothing that a handler commits would be committed."""
    other = session()
    other.settings_dict = {**copy.deepcopy(other.settings_dict), "AUTOCOMMIT": False}
    with as_default(other), pytest.raises(ImproperlyConfigured, match="AUTOCOMMIT"):
        Worker()


@SERVERS
def test_a_server_without_skip_locked_is_named(connection, monkeypatch):
    """A15: the check says which version it is, and which it has to be."""
    monkeypatch.setattr(connection.features, "has_select_for_update_skip_locked", False)
    (error,) = check_database(databases=["default"])
    version = ".".join(map(str, connection.get_database_version()))
    assert error.id == "leasequeue.E002"
    assert version in error.msg
    assert "SKIP LOCKED" in error.msg
    assert check_database(databases=["other"]) == []


@SERVERS
def test_a_server_that_refuses_skip_locked_is_fatal(connection):
    """A15: whatever a server says of its version, a worker is never quietly idle on it."""
    made = enqueue("t")
    code = {"mysql": 1064, "postgresql": "42601"}[connection.vendor]
    refused = Fault(code, match=lambda sql: "SKIP LOCKED" in sql, times=9)
    with broken_everywhere(refused), watching() as moments:
        assert Worker(solo=True, drain=True).run() == 1
    assert moments.named("worker_fatal")
    assert job(made.id).status == "ready"


@pytest.mark.only_on("mariadb")
@pytest.mark.parametrize("version", ["5.5.5-10.6.12-MariaDB-log", "10.11.6-mariadb"])
def test_a_version_in_disguise(connection, session, version):
    """A15: replication once needed MariaDB to call itself 5.5.5."""
    other = session()
    data = {**other.mysql_server_data, "version": version}
    vars(other)["mysql_server_data"] = data
    assert type(dialect_for(other)).__name__ == "MariaDB"
    assert type(dialect_for(connections["default"])).__name__ == "MariaDB"


@pytest.mark.parametrize("timeout", [None, 60])
def test_an_atomic_handler_that_could_outlast_its_lease_where_one_writes(
    connection, declare, timeout
):
    """On SQLite nothing renews the lease while the handler's transaction is open."""
    declare("atomic", atomic=True, timeout=timeout)(lambda: None)
    if not dialect_for(connection).one_writer:
        Worker(lease=60).close()
        return
    with pytest.raises(ImproperlyConfigured, match="timeout below its lease"):
        Worker(lease=60)
    registry.remove("atomic")
    declare("atomic", atomic=True, timeout=59)(lambda: None)
    Worker(lease=60).close()


@pytest.mark.parametrize(
    "options",
    [{"lease": 86_401}, {"lease": 1e15}, {"lease": float("inf")}, {"lease": float("nan")}]
    + [{name: float("nan")} for name in ("grace", "drain_wait", "poll_min", "poll_max")],
    ids=str,
)
def test_times_that_no_claim_or_wait_could_have(connection, options):
    """A lease past the server's dates would make every row look like one it refuses."""
    with pytest.raises(ImproperlyConfigured):
        Worker(**options)


def test_a_job_type_s_lease_has_the_same_end(connection, declare):
    declare("long", lease=1e15)(lambda: None)
    with pytest.raises(ImproperlyConfigured, match="long: a lease is at most"):
        Worker()
