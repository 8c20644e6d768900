"""Loads the suite's fixtures; `DATABASE_URL` alone decides which database they are on."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest
from django.test import override_settings

from django_leasequeue.core import claim

pytest_plugins = ["tests.fixtures.database", "tests.fixtures.processes"]
if not entry_points(group="pytest11", name="leasequeue"):  # a checkout that is not installed
    pytest_plugins.append("django_leasequeue.pytest_plugin")


@pytest.fixture(autouse=True, scope="session")
def _cheap_passwords() -> Iterator[None]:
    """A safe password hash takes half a second for each user that a test makes."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(autouse=True, scope="session")
def _patient_claims() -> Iterator[None]:
    """What a claim in this process finds is not to hang on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claim, "_MORE_SECONDS", 60.0)
        yield
