"""Random histories: whatever workers and an operator do in whatever order, the queue is the model.

Every change of status is in the table, no token is drawn twice, claims never fall, and what each
end spends is what the design says.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Machine
from tests.sweep.chance import WHOLE

PROFILE = settings(
    max_examples=1000 if WHOLE else 50,
    stateful_step_count=40,
    # The same histories at each run of the suite, and others at each `make sweep`, where there is
    # time to look for the shortest that fails.
    derandomize=not WHOLE,
    phases=[Phase.generate, Phase.shrink] if WHOLE else [Phase.generate],
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(3600 if WHOLE else 600)
def test_random_histories(connection):
    class OnThisDatabase(Machine):
        pass

    OnThisDatabase.connection = connection
    run_state_machine_as_test(OnThisDatabase, settings=PROFILE)
