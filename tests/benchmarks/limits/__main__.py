"""`python -m tests.benchmarks.limits --claim 10 --settle 1`, on the database of DATABASE_URL."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from tests.benchmarks.limits.driver import connect
from tests.benchmarks.limits.loop import Loop


def main() -> int:
    """Run one loop until its lane is empty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claim", type=int, default=10)
    parser.add_argument("--settle", type=int, default=1)
    parser.add_argument("--effect", action="store_true")
    parser.add_argument("--max-jobs", type=int, default=sys.maxsize)
    options = parser.parse_args()
    # As a worker logs its jobs: INFO, a line for the claim and one for the end.
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    database = connect(os.environ["DATABASE_URL"])
    Loop(database, options.claim, options.settle, effect=options.effect).run(options.max_jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
