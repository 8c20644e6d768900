"""The reports project with the handlers of these tests, for the processes that they start."""

from __future__ import annotations

import os

from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS, LEASEQUEUE

INSTALLED_APPS = [*INSTALLED_APPS, "tests.process.handlers"]

# A project that keeps its connections, as many do: "for ever", without a check before each use.
if os.environ.get("PROCESS_TEST_KEEP_CONNECTIONS") == "1":
    DATABASES["default"]["CONN_MAX_AGE"] = None

if "PROCESS_TEST_TIMEOUT" in os.environ:
    LEASEQUEUE["TIMEOUT"] = float(os.environ["PROCESS_TEST_TIMEOUT"])
if "PROCESS_TEST_OUTAGE_LIMIT" in os.environ:
    LEASEQUEUE["DATABASE_OUTAGE_LIMIT"] = float(os.environ["PROCESS_TEST_OUTAGE_LIMIT"])
