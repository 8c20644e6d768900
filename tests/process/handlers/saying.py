"""Handlers that log, as a project's handlers do."""

from __future__ import annotations

import logging
from typing import Any

from asgiref.sync import sync_to_async

from django_leasequeue import Reject, job

logger = logging.getLogger("a_project.reports")


def mourn(context: Any, error: Any) -> None:
    logger.warning("in the hook")


@job("proc.say", failed=mourn)
def say(end: str = "") -> None:
    logger.warning("in the handler")
    if end:
        raise Reject(end)


@job("proc.say_later")
async def say_later() -> None:
    logger.warning("in a coroutine")
    await sync_to_async(logger.warning)("in its thread")
