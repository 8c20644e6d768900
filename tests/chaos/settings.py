"""The storm's project: the one of the process tests with the storm's handlers."""

from __future__ import annotations

import os

from tests.process.settings import *  # noqa: F403
from tests.process.settings import INSTALLED_APPS

if "FAKETIME" in os.environ:
    import tests.faults.faketime_settings  # noqa: F401  (its sleep works under a false clock)

INSTALLED_APPS = [*INSTALLED_APPS, "tests.chaos"]
