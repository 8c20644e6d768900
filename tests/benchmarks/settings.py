"""The test project with the benchmarks' job types, and a second database for the big table.

Without the reports: their receiver of `jobs_claimed`, a fixture, would run before each job, and a
child with one tells of an end and of the next start apart.
"""

from __future__ import annotations

import json
import os

from testproject.settings import *  # noqa: F403
from testproject.settings import DATABASES, INSTALLED_APPS, LEASEQUEUE

INSTALLED_APPS = [*(app for app in INSTALLED_APPS if app != "reports"), "tests.benchmarks.work"]

#: Of the connections of workers, beside what the project has.
DATABASES["default"]["OPTIONS"] = {
    **DATABASES["default"].get("OPTIONS", {}),
    **json.loads(os.environ.get("BENCH_OPTIONS", "{}")),
}

#: Filled once, so that runs on it and on an empty table can take turns.
DATABASES["big"] = {**DATABASES["default"], "NAME": f"{DATABASES['default']['NAME']}_big"}

LEASEQUEUE |= json.loads(os.environ.get("BENCH_LEASEQUEUE", "{}"))
