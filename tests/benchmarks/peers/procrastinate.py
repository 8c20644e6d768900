"""procrastinate on psycopg: a worker with a concurrency of one."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from tests.benchmarks.peers.marks import mark


def _app() -> Any:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=_conninfo()))

    @app.task(name="noop")
    def noop(n: int) -> None:
        mark()

    return app


def _conninfo() -> str:
    return os.environ["DATABASE_URL"].replace("postgres://", "postgresql://", 1)


async def _with(use: Any) -> Any:
    app = _app()
    async with app.open_async():
        return await use(app)


def setup() -> None:
    """Make the tables."""
    asyncio.run(_with(lambda app: app.schema_manager.apply_schema_async()))


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""

    async def fill(app: Any) -> None:
        await app.tasks[kind].batch_defer_async(*({"n": n} for n in range(count)))

    asyncio.run(_with(fill))


def work() -> None:
    """Run its worker; what has finished stays."""
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_with(lambda app: app.run_worker_async(concurrency=1, delete_jobs="never")))


def done() -> int:
    """Count what succeeded."""
    import psycopg

    with psycopg.connect(_conninfo()) as connection:
        sql = "SELECT COUNT(*) FROM procrastinate_jobs WHERE status = 'succeeded'"
        row = connection.execute(sql).fetchone()
        return int(row[0]) if row else 0
