"""The command line: `python -m tests.bench_admin --rows 1000000`, on the DATABASE_URL's server."""

from __future__ import annotations

import argparse
import json
import sys
from time import perf_counter

from tests.soak.__main__ import ROOT, database, say


def main() -> int:
    """Fill the tables and ask for every page; return 1 when one was too slow or asked too much."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench_admin", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queues", type=int, default=8)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args()
    sys.path[:0] = [str(ROOT), str(ROOT / "testproject")]
    with database():
        return bench(options)


def bench(options: argparse.Namespace) -> int:
    """Do it on a migrated database."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client, override_settings

    from tests.bench_admin.fill import Filling
    from tests.bench_admin.measure import measure, table
    from tests.bench_admin.pages import pages

    if connection.vendor == "sqlite":
        raise SystemExit("DATABASE_URL has to name MariaDB, MySQL or PostgreSQL.")
    began = perf_counter()
    worst = Filling(connection, options.rows, options.queues).fill()
    filled = perf_counter() - began
    user = User.objects.create_superuser("bench")
    client = Client(raise_request_exception=False)
    client.force_login(user)
    with override_settings(ROOT_URLCONF="tests.bench_admin.pages", ALLOWED_HOSTS=["testserver"]):
        client.get("/admin/")  # so that the first page does not pay for what is loaded once
        found = [measure(client, connection, *one, options.times) for one in pages(worst, user.pk)]
    if options.json:
        say(json.dumps([one._asdict() for one in found]))
    else:
        size = f"{options.rows} jobs in {options.queues} queues"
        say(f"{connection.display_name}, {size}, filled in {filled:.0f} s\n\n{table(found)}\n")
    failed = [one for one in found if one.problem]
    for one in failed:
        print(f"FAILED: {one.page}: {one.problem}", file=sys.stderr)  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
