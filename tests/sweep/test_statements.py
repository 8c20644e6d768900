"""Every error of the protocol at every statement and COMMIT, before and after the server did it.

Deadlock, lock wait, snapshot conflict and lost connection kill no worker, lose no job, leave none
reserved, and never commit an effect twice or without its record.
"""

from __future__ import annotations

import pytest
from django.db import connections

from tests.faults import RECONNECT, codes_for
from tests.sweep.cases import EVERY, HANDLERS, working
from tests.sweep.cases.burying import burying
from tests.sweep.rounds import Case

LOST = RECONNECT[connections["default"].vendor]
#: What a worker's loop does: it waits until the database is back, and begins anew.
CONTROL: list[Case] = [*working.CASES, burying, *HANDLERS]


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.__name__)
def test_one_error(sweep, case):
    sweep(case).one_error(case)


@pytest.mark.parametrize("case", CONTROL, ids=lambda case: case.__name__)
def test_an_error_for_good(sweep, case):
    now = sweep(case)
    codes = codes_for(connections["default"])
    now.codes = [codes[0], codes[-1]]
    now.one_error(case, for_good=True)


@pytest.mark.skipif(not LOST, reason="there is no server whose answer could be lost")
@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.__name__)
def test_an_error_after_an_answer_that_was_lost(sweep, case):
    sweep(case).after_a_commit(case, LOST)
