"""Death at every statement: SIGKILL for whoever runs it, before and after the server did it.

Nobody tells anybody: the lease runs out, the caller calls again, and all that was promised holds.
"""

from __future__ import annotations

import pytest

from tests.sweep.cases import EVERY


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.__name__)
def test_killed(sweep, case):
    sweep(case).deaths(case)
