"""A child's driver is loaded whole before any thread connects."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.only_on("mariadb", "mysql")

SCRIPT = """
import sys
from types import SimpleNamespace
import MySQLdb
from django_leasequeue.core.dialect import load_driver
assert "MySQLdb.connections" not in sys.modules, "it is not late any more"
load_driver(SimpleNamespace(vendor="mysql", Database=MySQLdb))
assert "MySQLdb.connections" in sys.modules
load_driver(SimpleNamespace(vendor="oracle", Database=MySQLdb))
"""


def test_what_mysqlclient_imports_when_it_connects():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


ODD_ALIAS = """
from django.conf import settings
settings.configure(DATABASES={
    "odd": {"ENGINE": "no.such.backend"},
    "default": {"ENGINE": "django.db.backends.mysql"},
})
import sys
from django_leasequeue.runtime.preload import load
load()
assert "MySQLdb.connections" in sys.modules
"""


def test_an_alias_that_cannot_be_had_keeps_no_child_from_starting():
    subprocess.run([sys.executable, "-c", ODD_ALIAS], check=True)
