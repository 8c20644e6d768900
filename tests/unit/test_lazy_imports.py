"""Importing the package touches no models, no settings and no driver."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import django_leasequeue

IMPORT = """
import sys
import django_leasequeue
heavy = ("django.", "django_leasequeue.", "MySQLdb")
print([name for name in sys.modules if name.startswith(heavy) and not name.endswith(".version")])
print(django_leasequeue.__version__)
from django_leasequeue import Retry, Exponential, JobResult
import django_leasequeue.retry, django_leasequeue.outcomes, django_leasequeue.statuses
print("django.db.models" in sys.modules, "django_leasequeue.models" in sys.modules)
"""


def test_a_bare_import_brings_nothing_else():
    code = [sys.executable, "-W", "error", "-c", IMPORT]
    lines = subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["[]", django_leasequeue.__version__, "False False"]


def test_pytest_can_load_the_plugin_before_django_is_set_up():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    entry = project["project"]["entry-points"]["pytest11"]["leasequeue"]
    code = f"import sys, {entry}; print([name for name in sys.modules if name[:7] == 'django.'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("name", django_leasequeue.__all__)
def test_every_public_name_is_there(name):
    assert getattr(django_leasequeue, name).__name__ == name
    assert name in dir(django_leasequeue)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'enqueu'"):
        django_leasequeue.enqueu  # noqa: B018  (reading it is the test)
