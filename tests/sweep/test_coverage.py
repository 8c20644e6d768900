"""No statement is left out: those in the code, compared with those that the sweep meets."""

from __future__ import annotations

import pytest

from tests.faults import RECONNECT
from tests.sweep.cases import EVERY
from tests.sweep.cases.working import renewing
from tests.sweep.sites import met, noting_sites, sites

#: Modules whose statements are no part of a job's life, and why.
BESIDE = {
    "board": "reads for operators",
    "bulk_preview": "reads for a dry run",
    "crowds": "reads for operators",
    "dead_search": "reads for operators",
    "dives": "reads for the board and for metrics",
    "gauges": "reads for metrics",
    "presence": "tells operators of workers, decides nothing about jobs",
    "prune_run": "deletes rows of workers and bulk runs",
    "reach": "reads for health checks",
    "recent": "reads for metrics",
    "sessions": "ends another session's statement, and writes nothing",
    "simulate": "for the tests of projects",
}
#: Written for servers without ON CONFLICT, where a key's index entry may be locked.
_WITHOUT = {
    "effects.claim_effect 2",
    "insert.insert_one 2",
    "insert_many._look_up",
    "insert_many.insert_batch 2",
    "keys.held_keys",
}
_WITH = {"effects.claim_effect", "insert.insert_one", "insert_many.insert_batch"}
#: They look up what became of a COMMIT; SQLite's answer is never lost.
_ANSWERS = {
    "attempts.free",
    "bulk_chunk._place",
    "effects.effect_stands",
    "pruning._any_left",
    "reading.read",
}
_NOTIFY = {"wake_workers._notify"}
_ROW_LOCK = {"lease.lock_within"}
#: Statements that a database never gets.
UNMET = {
    "mariadb": _WITH | _NOTIFY,
    "mysql": _WITH | _NOTIFY,
    "postgres": _WITHOUT,
    "sqlite": _WITHOUT | _ANSWERS | _NOTIFY | _ROW_LOCK,
}


def module_of(site: str) -> str:
    return site.partition(".")[0]


@pytest.mark.leaves_reserved
def test_every_statement_is_met(sweep, connection, db_kind):
    """A new statement comes with an operation of the sweep that meets it."""
    seen: set[str] = set()
    with noting_sites() as made:
        for case in EVERY:
            seen |= met(made, sweep(case).statements(case, RECONNECT[connection.vendor]))
    wanted = {site for site in sites().values() if module_of(site) not in BESIDE}
    assert wanted - seen == UNMET.get(db_kind, set())


def test_what_is_left_out_is_there():
    assert {module_of(site) for site in sites().values()} >= set(BESIDE)
    assert set(sites().values()) >= {site for unmet in UNMET.values() for site in unmet}


@pytest.mark.leaves_reserved
def test_a_statement_that_nobody_meets_is_missed(sweep, connection):
    with noting_sites() as made:
        seen = met(made, sweep(renewing).statements(renewing, []))
    assert seen == {"lease._renew", "lease._renew 2"}
