"""The storm: one loop that enqueues, deals blows and starts anew, then waits until all is done."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from django.db import connection

from django_leasequeue.core.periodic import database_now
from django_leasequeue.core.schedules import add_schedule, disable_schedule
from django_leasequeue.models import Job, Schedule
from tests.chaos.agenda import Agenda
from tests.chaos.blows import GONE_SECONDS, Blows
from tests.chaos.fleet import Fleet, Slot
from tests.chaos.kinds import QUEUES
from tests.chaos.orders import BATCH, Gone, Orders
from tests.faults.tree import Process
from tests.harness.server import Server
from tests.harness.tied import tied
from tests.worker_process import WorkerProcess

T = TypeVar("T")

SCHEDULE = "storm"
BETWEEN_BLOWS = (0.1, 0.8)
BETWEEN_SERVER_KILLS = (9.0, 20.0)
#: A worker that was told to end has ended by then, with a server that comes back.
END_SECONDS = 40.0
#: When no job has ended for so long in the calm after the storm, the rest is stuck.
STUCK_SECONDS = 25.0
PAUSE = 0.05


class Storm:
    """One storm of so many seconds and jobs; all it does by chance follows from the seed."""

    def __init__(self, seed: str, seconds: float, jobs: int, server: Server | None) -> None:
        self.seconds, self.seed = seconds, seed
        self.agenda = Agenda()
        self.chance = random.Random(seed)
        self.orders = Orders(jobs, random.Random(f"{seed} orders"))
        self.server = server
        self.problems: list[str] = []
        self.operated: Counter[str] = Counter()
        self.first_tick: datetime | None = None
        self.stuck: list[str] = []
        self.fatal = 0
        self._raging = False

    def run(self, folder: Path) -> None:
        """Rage, then wait for the calm; what was seen is left in the attributes."""
        on_sqlite = connection.vendor == "sqlite"
        with Fleet(folder, self.chance, on_sqlite=on_sqlite) as self.fleet:
            self._run(Blows(self.fleet, self.server, self.agenda, self.chance))

    def _run(self, blows: Blows) -> None:
        self.blows = blows
        added = add_schedule(SCHEDULE, "storm.tick", every=1, catch_up="all", queue=QUEUES[0])
        self.first_tick = added.next_tick
        operator = _operator(self.seed)
        try:
            for slot in self.fleet.slots:
                self.fleet.start(slot)
            self._rage()
            self._end_operator(operator)
            self._calm_down()
            self._end_workers()
        finally:
            operator.kill()
            operator.wait()

    def _rage(self) -> None:
        until = time.monotonic() + self.seconds
        self._raging = True
        self._deal()
        if self.server:
            self.agenda.after(self.seconds * self.chance.uniform(0.2, 0.4), self._kill_server)
        self._place(0.6 * self.seconds / self.orders.batches)
        while time.monotonic() < until:
            self._pass()
        self._raging = False
        while self.agenda or self.orders:
            self._pass()

    def _deal(self) -> None:
        if self._raging:
            self.blows.deal()
            self.agenda.after(self.chance.uniform(*BETWEEN_BLOWS), self._deal)

    def _kill_server(self) -> None:
        if self._raging:
            self.blows.kill_server()
            self.agenda.after(self.chance.uniform(*BETWEEN_SERVER_KILLS), self._kill_server)

    def _place(self, every: float) -> None:
        if self.blows.server_is_up:
            self.orders.place(BATCH)
        if self.orders:
            self.agenda.after(every if self._raging else PAUSE, lambda: self._place(every))

    def _pass(self) -> None:
        """Do what is due, and see who has ended."""
        self.agenda.run_due()
        for slot in self.fleet.slots:
            if slot.process and slot.process.code is not None:
                self._ended(slot)
        time.sleep(PAUSE)

    def _ended(self, slot: Slot) -> None:
        assert slot.process
        code = slot.process.wait()
        if code == 1 and slot.process.named("worker_fatal") and self.blows.dealt["server killed"]:
            self.fatal += 1
        elif not (slot.told and code in (0, -signal.SIGKILL, self._at_boot(slot.process))):
            told = "told to end" if slot.told else "not told to end"
            log = slot.process.log()[-3000:]
            self.problems.append(f"worker {slot.number}, {told}, ended with {code}:\n{log}")
        self.fleet.leave(slot)
        self.agenda.after(self.chance.uniform(0, 2), lambda: self.fleet.start(slot))

    @staticmethod
    def _at_boot(worker: WorkerProcess) -> int:
        """Return the code of a worker that SIGTERM met before it could handle it."""
        return 0 if worker.named("worker_started") else -signal.SIGTERM

    def _end_operator(self, operator: subprocess.Popen[str]) -> None:
        operator.send_signal(signal.SIGTERM)
        said, _nothing = operator.communicate(timeout=60)
        if operator.returncode != 0:
            self.problems.append(f"the operator ended with {operator.returncode}")
        else:
            self.operated.update(json.loads(said))

    def _calm_down(self) -> None:
        """Wait until all workers are back and the schedule has caught up, then for every job."""
        if missing := self._wait(lambda: sum(not slot.back for slot in self.fleet.slots)):
            self.problems.append(f"{missing} workers are not back in the calm")
        now = _ask(lambda: database_now(connection))
        rows = Schedule.objects.filter(name=SCHEDULE, last_tick__gte=now)
        if self._wait(lambda: 1 - rows.count()):
            self.problems.append("the schedule has not caught up in the calm")
        _ask(lambda: disable_schedule(SCHEDULE))
        unfinished = Job.objects.unfinished()
        if self._wait(unfinished.count):
            self.stuck = [
                f"{job.job_type} #{job.pk} {job.status}, due {job.available_at}, leased until "
                f"{job.lease_until} by {job.leased_by!r}, {job.claims} claims"
                for job in unfinished[:20]
            ]

    def _wait(self, left: Callable[[], int]) -> int:
        """Wait while the number `left` changes at least now and then; return it at the end."""
        last, since = -1, time.monotonic()
        while (now_left := _ask(left)) and time.monotonic() < since + STUCK_SECONDS:
            if now_left != last:
                last, since = now_left, time.monotonic()
            for _ in range(5):
                self._pass()
        return now_left

    def _end_workers(self) -> None:
        """Stop all workers, and see that nothing of them is left."""
        families = [self.fleet.tree(slot) for slot in self.fleet.slots]
        running = [slot for slot in self.fleet.slots if slot.process]
        if len(running) < len(families):
            self.problems.append(f"only {len(running)} of {len(families)} workers are there")
        for slot in running:
            assert slot.process
            slot.process.signal(signal.SIGTERM)
        for slot in running:
            assert slot.process
            if (code := slot.process.wait(END_SECONDS)) != 0:
                self.problems.append(f"worker {slot.number} ended with {code} in the calm")
            self.fleet.leave(slot)
        self._expect_gone([one for family in families for one in family])

    def _expect_gone(self, family: list[Process]) -> None:
        """Wait for what ends together with a control process, and say what does not."""
        until = time.monotonic() + GONE_SECONDS
        while any(not one.gone for one in family) and time.monotonic() < until:
            time.sleep(PAUSE)
        if left := [one.description for one in family + self.blows.orphans if not one.gone]:
            self.problems.append(f"processes that outlived their control: {left}")


def _ask(question: Callable[[], T]) -> T:
    """Return the answer of a server that may have gone and come back since it was asked last."""
    try:
        return question()
    except Gone:
        connection.close()
        return question()


def _operator(seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.chaos.operator", f"{seed} operator"]
    return subprocess.Popen(
        tied(command), env=os.environ.copy(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
