"""The settings of the process tests, served under the content security policy of the docs."""

from __future__ import annotations

from tests.process.settings import *  # noqa: F403
from tests.process.settings import MIDDLEWARE

MIDDLEWARE = ["tests.browser.policy.Policy", *MIDDLEWARE]
