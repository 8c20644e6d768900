"""A Django project with one peer, its tables and the table of effects."""

from __future__ import annotations

import importlib
import os

from testproject.database import database_from_url

_adapter = importlib.import_module(f"tests.benchmarks.peers.{os.environ['PEER']}")

SECRET_KEY = "for benchmarks only"
USE_TZ = True
DATABASES = {"default": database_from_url(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["tests.benchmarks.work", *_adapter.APPS]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(process)d %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
globals().update(_adapter.settings())
