"""The process tests' settings, with signing on and the language of whoever enqueues."""

from __future__ import annotations

from tests.process.settings import *  # noqa: F403
from tests.process.settings import LEASEQUEUE

LEASEQUEUE = {
    **LEASEQUEUE,
    "SIGNING_KEYS": ["not a secret: a key of these tests"],
    "MIDDLEWARE": ["django_leasequeue.middleware.LocaleMiddleware"],
}
