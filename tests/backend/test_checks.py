"""What `manage.py check` says of TASKS."""

from __future__ import annotations

import pytest
from django.test import modify_settings, override_settings

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
        ({"QUEUES": ["x" * 65]}, "leasequeue.E011"),
        ({"QUEUES": [""]}, "leasequeue.E011"),
        ({"OPTIONS": {"database": "default"}}, "leasequeue.E012"),
        ({"OPTIONS": {"DATABASE": "nowhere"}}, "leasequeue.E013"),
    ],
)
def test_broken(entry, found):
    assert ids(**entry) == [found]


def test_an_app_that_is_not_installed():
    with modify_settings(INSTALLED_APPS={"remove": ["django_leasequeue"]}):
        assert ids() == ["leasequeue.E010"]


def test_said_once_when_the_backport_asks_as_well():
    """I8: it makes a backend of its own of the same setting."""
    with override_settings(TASKS={"default": {"BACKEND": PATH, "QUEUES": [""]}}):
        other = LeaseQueueBackend("default", {"QUEUES": [""]})
        assert other.check() == []
        assert len(task_backends["default"].check()) == 1
