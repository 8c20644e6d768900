"""The fixtures of the core's tests, and an attempt's end made due again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.arrange import shift
from tests.core.conftest import attempt, buried, declare, finish
from tests.field.conftest import short_leases

__all__ = ["attempt", "buried", "declare", "due_again", "finish", "short_leases"]


@pytest.fixture
def due_again(connection: Any) -> Callable[[int], None]:
    """Let a job's delay be over."""
    return lambda job_id: shift(connection, job_id, "available_at", -1)
