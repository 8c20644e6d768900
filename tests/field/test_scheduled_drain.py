"""H5: a draining worker takes what is due when it starts, and ends."""

from __future__ import annotations

from datetime import timedelta

from django_leasequeue import add_schedule
from django_leasequeue.models import Job, Schedule
from tests.field.workers import drain


def test_a_drain_ticks_once_and_ends(connection, declare):
    """Though the next tick of such a schedule is never further than a second."""
    ran = []
    declare("often")(lambda: ran.append("run"))
    schedule = add_schedule("each second", "often", every=1, catch_up="all")
    assert schedule.next_tick is not None
    Schedule.objects.update(next_tick=schedule.next_tick - timedelta(seconds=250))
    drain()
    ticks = list(Job.objects.order_by("tick_at").values_list("tick_at", flat=True))
    first = schedule.next_tick - timedelta(seconds=250)
    assert ticks == [first + timedelta(seconds=number) for number in range(len(ticks))]
    assert len(ran) == len(ticks) >= 250
