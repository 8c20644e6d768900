"""Other queues at the same work: nothing, and where they are on Django one row."""

from __future__ import annotations

import os

from tests.benchmarks.peers import PEERS, Peer
from tests.benchmarks.peers.environments import NotInstalled, program
from tests.benchmarks.peers.turn import Turn
from tests.benchmarks.rounds import ALL, Bench, Comparison, Contestant, Scenario

OURS = "leasequeue"
SERVERS = ("mariadb", "mysql", "postgres")


def contestants(bench: Bench, kind: str) -> dict[str, Contestant | str]:
    """Return a turn for each peer that runs on this database, or why it has none."""
    found: dict[str, Contestant | str] = {}
    for peer in PEERS:
        if bench.kind in peer.databases and (kind == "noop" or peer.django):
            found[peer.title] = _turn(bench, peer, kind)
    return found


def _turn(bench: Bench, peer: Peer, kind: str) -> Contestant | str:
    if peer.redis and "BENCH_REDIS_URL" not in os.environ:
        return os.environ.get("BENCH_NO_REDIS", "no BENCH_REDIS_URL names a Redis")
    count = max(20, bench.jobs // 5) * peer.share
    try:
        return Turn(bench, peer, program(peer, bench.kind), count, kind)
    except NotInstalled as error:
        return f"not installed: {error}"


def noop(bench: Bench) -> dict[str, Contestant | str]:
    """Return everybody."""
    return contestants(bench, "noop")


def effect(bench: Bench) -> dict[str, Contestant | str]:
    """Return those whose handlers have Django."""
    return contestants(bench, "effect")


SCENARIOS = (
    Scenario(
        name="peers",
        title="Other queues, jobs that do nothing, one worker process",
        unit="jobs/s",
        contestants=noop,
        comparisons=(
            Comparison(OURS, "django-tasks-db", at_least=5),
            Comparison(OURS, "steady-queue", at_least=5),
            *(
                Comparison(OURS, name, at_least=1)
                for name in ("django-ox", "dj-queue", "django-q2", "procrastinate")
            ),
            Comparison(OURS, "Celery (Redis)", at_least=1),
            Comparison(OURS, "huey (Redis)"),
            Comparison(OURS, "pgqueuer", at_least=0.8),
            Comparison(f"{OURS} --solo", "huey (SQLite)", at_least=0.5, databases=("sqlite",)),
        ),
        databases=ALL,
    ),
    Scenario(
        name="peers-effects",
        title="Other queues on Django, jobs that write a row",
        unit="jobs/s",
        contestants=effect,
        comparisons=(
            Comparison(OURS, "django-tasks-db", at_least=2),
            Comparison(OURS, "steady-queue", at_least=2),
            *(
                Comparison(OURS, name, at_least=1)
                for name in ("django-ox", "dj-queue", "django-q2")
            ),
        ),
        databases=SERVERS,
    ),
)
