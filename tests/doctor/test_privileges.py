"""The account: what a worker needs, what it should not have, what it may not see."""

from __future__ import annotations

import copy
from contextlib import closing, contextmanager

import pytest
from django.db import connections

from django_leasequeue.doctor import privileges
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.examine import examine
from django_leasequeue.runtime.connections import open_control
from tests.core.arrange import run
from tests.doctor.asking import ids, only
from tests.process.accounts import least_privileged

pytestmark = pytest.mark.only_on("mariadb", "mysql", "postgres")


@contextmanager
def logged_in(connection, login):
    """A case under another account, which `examine` uses as well."""
    settings = connections["default"].settings_dict
    before = copy.deepcopy(settings)
    settings.update(USER=login["user"], PASSWORD=login["password"])
    other = type(connection)(copy.deepcopy(settings), "default")
    try:
        with closing(other), closing(open_control("default", 60)) as worker:
            yield Case("default", other, worker)
    finally:
        settings.update(before)


def grant(connection, words, login, *, revoke=False, table="leasequeue_job"):
    who = login["user"] + ("@'%'" if connection.vendor == "mysql" else "")
    verb, to = ("REVOKE", "FROM") if revoke else ("GRANT", "TO")
    run(connection, f"{verb} {words} ON {table} {to} {who}", None)


def test_the_least_privileged_account(connection):
    """Everything else can be looked at with it, too; what not is a note."""
    with least_privileged(connection) as account, logged_in(connection, account.login) as case:
        assert list(privileges.privileges(case)) == []
        found = examine()
        assert [one for one in found if one.kind.id[11] != "I"] == []
        unseen = [one.what for one in found if one.kind.id == "leasequeue.I007"]
    lacks = {"mysql": "PROCESS", "postgresql": "pg_read_all_stats"}[connection.vendor]
    assert len(unseen) == 1
    assert "old transactions" in unseen[0]
    assert lacks in unseen[0]


def test_delete_granted(connection):
    with least_privileged(connection) as account:
        grant(connection, "DELETE", account.login)
        with logged_in(connection, account.login) as case:
            found = only(privileges.privileges, case)
    assert ids([found]) == ["I005"]
    assert found.what.endswith("delete rows of leasequeue_job.")


def test_a_privilege_that_is_missing(connection):
    with least_privileged(connection) as account:
        whole = f"`{connection.settings_dict['NAME']}`.*"
        table = whole if connection.vendor == "mysql" else "leasequeue_job"
        grant(connection, "UPDATE", account.login, revoke=True, table=table)
        with logged_in(connection, account.login) as case:
            found = only(privileges.privileges, case)
            assert "leasequeue.E013" in {one.kind.id for one in examine()}
    assert ids([found]) == ["E013"]
    assert "UPDATE on leasequeue_job" in found.what


def test_an_administrator_is_told(case):
    assert ids(privileges.privileges(case())) == ["I005"]
