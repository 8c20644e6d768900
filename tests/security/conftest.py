"""The fixtures of the core's, the sub-commands' and the processes' tests."""

from __future__ import annotations

import pytest

from tests.cli.conftest import leasequeue
from tests.core.conftest import declare
from tests.process.conftest import process_environment
from tests.security.hostile import TEXTS

__all__ = ["declare", "hostile", "leasequeue", "process_environment"]


@pytest.fixture(params=TEXTS.values(), ids=TEXTS)  # type: ignore[untyped-decorator]
def hostile(request: pytest.FixtureRequest) -> str:
    """A text that some layer could obey."""
    text: str = request.param
    return text
