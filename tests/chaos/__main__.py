"""The storm's command line: `python -m tests.chaos mariadb --seconds 600 --jobs 10000`.

It starts a server of its own, which is killed as well; with --url it uses another, which is not.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from tests.chaos.place import database, server_of_our_own
from tests.harness.databases import NAMES
from tests.harness.problems import say
from tests.harness.server import Server


def main() -> int:
    """Run one storm; return 1 when anything was lost, doubled, stuck or otherwise wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("database", choices=NAMES)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--seed", default="", help="what happens by chance follows from it")
    parser.add_argument(
        "--url", default="", help="a server that is not to be killed, as a DATABASE_URL"
    )
    options = parser.parse_args()
    seed = options.seed or str(random.randrange(10**6))
    say(f"storm on {options.database}, {options.seconds:g} s, {options.jobs} jobs")
    say(f"CHAOS_SEED={seed}")
    if options.url:
        with database(urlsplit(options.url)._replace(path=f"/storm_{os.getpid()}").geturl()):
            return rage(options, seed, None)
    with server_of_our_own(options.database) as server:
        if server is None and options.database != "sqlite":
            return 1  # it has been said why
        with database(server.url("storm") if server else ""):
            return rage(options, seed, server)


def rage(options: argparse.Namespace, seed: str, server: Server | None) -> int:
    """Run the storm on the database that there is now, and print what it has left."""
    from tests.chaos import effects
    from tests.chaos.report import report
    from tests.chaos.storm import SCHEDULE, Storm
    from tests.chaos.verdict import judge

    effects.create()
    storm = Storm(seed, options.seconds, options.jobs, server)
    with TemporaryDirectory() as folder:
        storm.run(Path(folder))
        verdict = judge(storm.orders.acknowledged, SCHEDULE, storm.first_tick)
    say("\n".join(report(storm, verdict)))
    return 1 if storm.problems or storm.stuck or verdict.problems else 0


if __name__ == "__main__":
    sys.exit(main())
