"""The OPTIONS of a worker's own connections: what the project's may not change there."""

from __future__ import annotations

import pytest

from django_leasequeue.core.dialects.mysql import MariaDB, MySQL
from django_leasequeue.runtime.connections import bounds_for

FOUND_ROWS, MULTI_STATEMENTS = 1 << 1, 1 << 16


@pytest.mark.parametrize("family", [MySQL, MariaDB])
@pytest.mark.parametrize("flag", [MULTI_STATEMENTS | FOUND_ROWS, MULTI_STATEMENTS])
@pytest.mark.parametrize("options", [{}, {"multi_statements": True}])
def test_one_statement_at_a_time(family, options, flag):
    """Seed S1. mysqlclient sets the flag by itself unless it is told not to."""
    given = {**options, "client_flag": flag, "charset": "utf8mb4"}
    kept = family().control_options(given, bounds_for(60))
    assert (kept["client_flag"], kept["multi_statements"]) == (FOUND_ROWS, False)
    assert kept["charset"] == "utf8mb4"
    assert given["client_flag"] == flag  # the project's own
