"""Other queues' tables in the test database: of the real package where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.test import override_settings

from tests.cli.conftest import leasequeue
from tests.core.conftest import declare

__all__ = ["declare", "leasequeue"]

#: The app, what stands in for it, and the tables that an import reads, in the order of making.
SOURCES = {
    "celery-beat": (
        "django_celery_beat",
        "tests.importers.standins.celery_beat.apps.StandIn",
        (
            "SolarSchedule",
            "IntervalSchedule",
            "ClockedSchedule",
            "CrontabSchedule",
            "PeriodicTasks",
            "PeriodicTask",
        ),
    ),
    "django-q2": ("django_q", "tests.importers.standins.q2.apps.StandIn", ("Schedule",)),
    "django-tasks-db": (
        "django_tasks_db",
        "tests.importers.standins.tasks_db.apps.StandIn",
        ("DBTaskResult",),
    ),
}


@contextmanager
def installed(source: str, settings: Any) -> Iterator[dict[str, Any]]:
    """Install the source's app and make its tables; yield its models by name."""
    real, stand_in, names = SOURCES[source]
    entry = real if find_spec(real) else stand_in
    with override_settings(INSTALLED_APPS=[*settings.INSTALLED_APPS, entry]):
        label = next(
            config.label for config in apps.get_app_configs() if config.name in (real, _app(entry))
        )
        found = {model.__name__: model for model in apps.get_app_config(label).get_models()}
        models = [found[name] for name in names if name in found]
        with connection.schema_editor() as editor:
            for model in models:
                editor.create_model(model)
        try:
            yield found
        finally:
            with connection.schema_editor() as editor:
                for model in reversed(models):
                    editor.delete_model(model)


def _app(entry: str) -> str:
    return entry.removesuffix(".apps.StandIn")


@pytest.fixture
def celery_beat(queue_db, settings) -> Iterator[dict[str, Any]]:
    with installed("celery-beat", settings) as models:
        yield models


@pytest.fixture
def django_q2(queue_db, settings) -> Iterator[dict[str, Any]]:
    with installed("django-q2", settings) as models:
        yield models


@pytest.fixture
def tasks_db(queue_db, settings) -> Iterator[dict[str, Any]]:
    with installed("django-tasks-db", settings) as models:
        yield models
