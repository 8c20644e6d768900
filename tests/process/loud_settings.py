"""The process tests' settings with every line of the log, in the format of a project's own."""

from __future__ import annotations

import os

from tests.process.settings import *  # noqa: F403

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"own": {"style": "{", "format": "{levelname} {event} {fields}"}},
    "handlers": {"own": {"class": "logging.StreamHandler", "formatter": "own"}},
    "loggers": {
        "django_leasequeue": {
            "level": "DEBUG",
            "handlers": ["own"] if os.environ.get("PROCESS_TEST_OWN_HANDLER") else [],
        }
    },
}
