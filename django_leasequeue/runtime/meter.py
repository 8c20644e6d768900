"""The meter: what a worker tells of its work as it goes, to whoever counts; by default nobody.

Called by the worker's loop, once for each thing that happened: an implementation must be quick,
ask no database and raise nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from django_leasequeue.core.recover import Recovered
from django_leasequeue.core.settle import Settled
from django_leasequeue.core.ticking import Ticked
from django_leasequeue.runtime.charges import Charge, Ended

__all__ = ["Meter"]


class Meter:
    """Counts nothing. Times are seconds."""

    def turned(self) -> None:
        """Note a pass of the loop; of a solo worker also while its handler runs, by a thread."""

    def claimed(self, charges: Sequence[Charge], seconds: float) -> None:
        """Note a claim, which may have found nothing, and how long it took."""

    def settled(self, ended: Ended, settled: Settled, seconds: float) -> None:
        """Note an attempt whose end was written, or could not be any more, after `seconds`."""

    def buried(self, ended: Ended) -> None:
        """Note that a `failed` hook has ended."""

    def left(self, ended: Ended, *, unstarted: bool) -> None:
        """Note an end that a stopping worker could not write; `unstarted`: a release."""

    def recovered(self, jobs: Sequence[Recovered]) -> None:
        """Note expired leases of any worker that were taken back."""

    def ticked(self, ticked: Sequence[Ticked]) -> None:
        """Note ticks of schedules that this worker took, or could not take for their faults."""

    def lost_database(self) -> None:
        """Note the start of an outage."""

    def failed(self) -> None:
        """Note that a fatal error ends the worker."""
