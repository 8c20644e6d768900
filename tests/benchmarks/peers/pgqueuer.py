"""pgqueuer on asyncpg, as its own quick start runs it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Any

from tests.benchmarks.peers.marks import mark


async def _connect() -> Any:
    import asyncpg

    return await asyncpg.connect(os.environ["DATABASE_URL"])


async def _queries() -> Any:
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    return Queries(AsyncpgDriver(await _connect()))


async def _setup() -> None:
    await (await _queries()).install()


async def _enqueue(count: int, kind: str) -> None:
    await (await _queries()).enqueue(
        [kind] * count, [str(n).encode() for n in range(count)], [0] * count
    )


async def _work() -> None:
    from pgqueuer import PgQueuer
    from pgqueuer.db import AsyncpgDriver

    queuer = PgQueuer(AsyncpgDriver(await _connect()))

    @queuer.entrypoint("noop")
    async def noop(job: Any) -> None:
        mark()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
    await queuer.run()


async def _done() -> int:
    connection = await _connect()
    sql = "SELECT COUNT(DISTINCT job_id) FROM pgqueuer_log WHERE status = 'successful'"
    return int(await connection.fetchval(sql))


def setup() -> None:
    """Make the tables."""
    asyncio.run(_setup())


def enqueue(count: int, kind: str) -> None:
    """Enqueue so many."""
    asyncio.run(_enqueue(count, kind))


def work() -> None:
    """Run its worker with its defaults."""
    logging.basicConfig(level=logging.INFO)
    asyncio.run(_work())


def done() -> int:
    """Count what its log calls successful."""
    return asyncio.run(_done())
