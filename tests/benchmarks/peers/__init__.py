"""Other queues at the same work, each in an environment of its own; one adapter a file.

An adapter is a module with `setup`, `enqueue`, `work` (runs its worker in the foreground) and
`done` (how many jobs its own records call finished). It runs in the peer's environment, so it
imports the peer inside of these.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVERS = ("mariadb", "mysql", "postgres")


@dataclass(frozen=True)
class Peer:
    """A queue and one way to run it. `requires` are names of pins in the extra `bench`."""

    title: str
    adapter: str
    requires: tuple[str, ...] = ()
    databases: tuple[str, ...] = SERVERS
    #: Has a handler with Django's ORM, which can write the row of the effects.
    django: bool = True
    #: Jobs of a turn, for each that a slow peer gets.
    share: int = 1
    redis: bool = False
    #: What `work` is told.
    option: str = ""


PEERS = (
    Peer("leasequeue", "leasequeue", databases=("sqlite", *SERVERS), share=5),
    Peer("leasequeue --solo", "leasequeue", databases=("sqlite", *SERVERS), share=5, option="solo"),
    Peer("django-tasks-db", "django_tasks_db", ("django-tasks-db",)),
    Peer("steady-queue", "steady_queue", ("steady-queue",)),
    Peer("django-ox", "django_ox", ("django-ox",)),
    Peer("dj-queue", "dj_queue", ("dj-queue",)),
    Peer("django-q2", "django_q2", ("django-q2",)),
    Peer("procrastinate", "procrastinate", ("procrastinate",), ("postgres",), django=False),
    Peer("pgqueuer", "pgqueuer", ("pgqueuer", "asyncpg"), ("postgres",), django=False, share=5),
    Peer("huey (SQLite)", "huey_sqlite", ("huey",), ("sqlite",), django=False, share=5),
    Peer("huey (Redis)", "huey_redis", ("huey", "redis"), django=False, share=5, redis=True),
    Peer("Celery (Redis)", "celery", ("celery",), django=False, share=5, redis=True),
)
