"""What `manage.py check` says of TASKS."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.test import override_settings

from django_leasequeue.backend import LeaseQueueBackend
from django_leasequeue.backend.compat import task_backends

PATH = "django_leasequeue.backend.LeaseQueueBackend"


def ids(**entry):
    with override_settings(TASKS={"default": {"BACKEND": PATH, **entry}}):
        return [message.id for message in task_backends["default"].check()]


def test_sound():
    assert ids() == []
    assert ids(QUEUES=["a", "b"], OPTIONS={"DATABASE": "default", "MODULES": []}) == []


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"QUEUES": ["x" * 65]}, "leasequeue.E017"),
        ({"QUEUES": [""]}, "leasequeue.E017"),
        ({"OPTIONS": {"database": "default"}}, "leasequeue.E018"),
        ({"OPTIONS": {"DATABASE": "nowhere"}}, "leasequeue.E019"),
    ],
)
def test_broken(entry, found):
    assert ids(**entry) == [found]


WITHOUT_THE_APP = f"""
import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
settings.configure(TASKS={{"default": {{"BACKEND": "{PATH}"}}}})
django.setup()
try:
    import django_leasequeue.backend
except ImproperlyConfigured as error:
    print(error)
"""


def test_an_app_that_is_not_installed():
    code = [sys.executable, "-c", WITHOUT_THE_APP]
    said = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    assert "add 'django_leasequeue' to INSTALLED_APPS" in said


def test_said_once_when_the_backport_asks_as_well():
    """I8: it makes a backend of its own of the same setting."""
    with override_settings(TASKS={"default": {"BACKEND": PATH, "QUEUES": [""]}}):
        other = LeaseQueueBackend("default", {"QUEUES": [""]})
        assert other.check() == []
        assert len(task_backends["default"].check()) == 1
