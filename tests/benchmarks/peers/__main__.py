"""`python -m tests.benchmarks.peers ADAPTER VERB [WORD]`, in the environment of the peer."""

from __future__ import annotations

import importlib
import os
import sys


def main() -> int:
    """Run one verb of one adapter."""
    name, verb, *words = sys.argv[1:]
    os.environ["PEER"] = name
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.benchmarks.peers.settings"
    adapter = importlib.import_module(f"tests.benchmarks.peers.{name}")
    if verb == "enqueue":
        adapter.enqueue(int(words[0]), words[1])
    elif verb == "done":
        print(adapter.done())  # noqa: T201  (the answer)
    elif verb == "work":
        adapter.work(*words)
    else:
        adapter.setup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
