"""Transactions that stay open: while one lasts, no row version that it may see is cleared away."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind

__all__ = ["old_transactions"]

OLD = Kind(
    "leasequeue.W014",
    "old-transactions",
    "End it (KILL, pg_terminate_backend, ROLLBACK PREPARED), and find out what leaves "
    "transactions open: every claim reads past the row versions that it keeps alive.",
)
#: Seconds.
OLD_AFTER = 300.0


def old_transactions(case: Case) -> Iterator[Finding]:
    """A transaction has kept old row versions alive for minutes."""
    found = case.server.old_transactions(case.connection, OLD_AFTER)
    if found:
        named = ", ".join(f"{one.holder} ({one.seconds:.0f} s)" for one in found)
        yield OLD.found(f"Transactions open for more than {OLD_AFTER:.0f} s: {named}.")
