"""The soak's command line: `python -m tests.soak --jobs 100000`, on the DATABASE_URL's server."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {
    "2 children": (["--processes", "2"], 2),
    "1 child with 8 threads": (["--processes", "1", "--threads", "8"], 1),
}


def main() -> int:
    """Run each shape; return 1 when something grew or went wrong in any."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    options = parser.parse_args()
    with database():
        # A list: the second shape runs even if the first one failed.
        return max([soak(title, options.jobs) for title in SHAPES])


def soak(title: str, jobs: int) -> int:
    """Run one shape and print what was seen."""
    from tests.soak.run import Soak
    from tests.soak.series import MEBIBYTES, SHARE, growth, table

    arguments, children = SHAPES[title]
    run = Soak(arguments, children, jobs)
    run.run()
    problems = [*run.problems, *growth(run.samples)]
    say(f"{title}: {jobs} jobs in {run.seconds:.0f} s, {jobs / run.seconds:.0f} a second")
    if run.samples:
        say(f"Medians of each tenth, from {len(run.samples)} samples:\n{table(run.samples)}")
    say(
        f"From the second tenth to the last, memory may grow by {SHARE:.0%} or {MEBIBYTES:g} MiB, "
        "nothing else at all."
    )
    say("\n".join(f"FAILED: {problem}" for problem in problems) or "Nothing grew.")
    say("")
    return 1 if problems else 0


@contextmanager
def database() -> Iterator[None]:
    """Make a test database for the block, as Django's test runner does."""
    found = [str(ROOT), str(ROOT / "testproject"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, found))
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.process.settings"
    sys.path[:0] = found[:2]
    import django
    from django.db import connections
    from django.test.utils import setup_databases, teardown_databases

    django.setup()
    with TemporaryDirectory() as folder:
        for settings in connections.settings.values():
            if settings["ENGINE"].endswith("sqlite3"):
                settings["TEST"]["NAME"] = f"{folder}/test.sqlite3"
        made = setup_databases(verbosity=0, interactive=False)
        try:
            yield
        finally:
            teardown_databases(made, verbosity=0)


def say(text: str) -> None:
    """Print it now, also into a pipe."""
    print(text, flush=True)  # noqa: T201  (a command line talks by printing)


if __name__ == "__main__":
    sys.exit(main())
