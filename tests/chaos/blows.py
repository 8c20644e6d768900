"""The blows: each is one bad thing that happens to a worker, or to the server."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.chaos.agenda import Agenda
from tests.chaos.fleet import LEASE, Fleet, Slot
from tests.faults.proxy import Proxy
from tests.faults.tree import Process
from tests.harness.server import Server

#: A process whose control is gone has ended by then.
GONE_SECONDS = 15.0
#: How long a process stands still at most: longer than its lease.
FROZEN_SECONDS = 2.5 * LEASE


class Blows:
    """Deals blows by chance, and puts on the agenda what has to follow; `dealt` counts them."""

    def __init__(
        self, fleet: Fleet, server: Server | None, agenda: Agenda, chance: random.Random
    ) -> None:
        self._fleet, self._server, self._agenda, self._chance = fleet, server, agenda, chance
        self.dealt: Counter[str] = Counter()
        self.server_is_up = True
        #: What outlived its control process.
        self.orphans: list[Process] = []
        self._whole = list(fleet.wires)
        self._shares: dict[Callable[[], None], int] = {
            self._kill_child: 30,
            self._stop_child: 12,
            self._terminate_child: 3,
            self._kill_control: 12,
            self._stop_control: 12,
            self._stop_tree: 8,
            self._terminate_control: 8,
            self._break_wire: 15,
        }

    def deal(self) -> None:
        """Do one bad thing to one worker, if one is free to take it."""
        (blow,) = self._chance.choices(list(self._shares), list(self._shares.values()))
        blow()

    def kill_server(self) -> None:
        """Kill the server, and start it again a moment later."""
        assert self._server
        if self.server_is_up:
            self.dealt["server killed"] += 1
            self.server_is_up = False
            self._server.crash()
            self._agenda.after(self._chance.uniform(0.1, 3), self._start_server)

    def _start_server(self) -> None:
        assert self._server
        self._server.start_again()
        self.server_is_up = True

    def _kill_child(self) -> None:
        self._hit_child(signal.SIGKILL, "children killed")

    def _terminate_child(self) -> None:
        self._hit_child(signal.SIGTERM, "children terminated")

    def _stop_child(self) -> None:
        self._hit_child(signal.SIGSTOP, "children stopped")

    def _hit_child(self, number: int, count: str) -> None:
        slot = self._fleet.pick(with_children=True)
        children = self._fleet.children(slot) if slot else []
        if not children:
            return
        victim = self._chance.choice(children)
        self._signal([victim], number)
        self.dealt[count] += 1
        if number == signal.SIGSTOP:
            self._agenda.after(self._moment(), lambda: self._signal([victim], signal.SIGCONT))

    def _kill_control(self) -> None:
        if slot := self._fleet.pick():
            family = self._fleet.tree(slot)
            self._tell(slot, signal.SIGKILL, "control killed")
            self._agenda.after(GONE_SECONDS, lambda: self._look_for_orphans(family))

    def _terminate_control(self) -> None:
        if slot := self._fleet.pick():
            self._tell(slot, signal.SIGTERM, "control terminated")

    def _tell(self, slot: Slot, number: int, count: str) -> None:
        """Send control what is to end it."""
        slot.busy = slot.told = True
        if slot.process:
            slot.process.signal(number)
        self.dealt[count] += 1

    def _look_for_orphans(self, family: Sequence[Process]) -> None:
        self.orphans += [one for one in family if not one.gone]

    def _stop_control(self) -> None:
        if slot := self._fleet.pick():
            self._freeze(slot, self._fleet.tree(slot)[:1], "control stopped")

    def _stop_tree(self) -> None:
        if slot := self._fleet.pick():
            self._freeze(slot, self._fleet.tree(slot), "workers stopped with all children")

    def _freeze(self, slot: Slot, processes: Sequence[Process], count: str) -> None:
        def thaw() -> None:
            self._signal(processes, signal.SIGCONT)
            slot.busy = False

        slot.busy = True
        self._signal(processes, signal.SIGSTOP)
        self.dealt[count] += 1
        self._agenda.after(self._moment(), thaw)

    def _break_wire(self) -> None:
        """Cut a wire, or let it go silent, forget its connections, or slow it down, for a while."""
        if not self._whole:
            return
        wire = self._whole.pop(self._chance.randrange(len(self._whole)))
        ways: dict[str, Callable[[Proxy], None]] = {
            "wires cut": Proxy.cut,
            "wires silent": Proxy.stall,
            "wires forgetful": Proxy.forget,
            "wires slow": lambda slow: slow.slow(0.05),
        }
        way = self._chance.choice(list(ways))
        ways[way](wire)
        self.dealt[way] += 1
        self._agenda.after(self._moment(), lambda: self._mend(wire))

    def _mend(self, wire: Proxy) -> None:
        wire.mend()
        self._whole.append(wire)

    def _moment(self) -> float:
        return self._chance.uniform(0.3, FROZEN_SECONDS)

    def _signal(self, processes: Sequence[Process], number: int) -> None:
        for one in processes:
            with suppress(ProcessLookupError):
                if not one.gone:
                    one.signal(number)
