"""What the peers on Django have in common: tables, and the two kinds of work."""

from __future__ import annotations

import contextlib

from tests.benchmarks.peers.marks import mark


def migrate() -> None:
    """Make the tables."""
    from django.core.management import call_command

    start()
    call_command("migrate", run_syncdb=True, verbosity=0)


def command(*words: str) -> None:
    """Run a management command in this process."""
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *words])


def noop(n: int) -> None:
    """Do nothing."""
    mark()


def effect(n: int) -> None:
    """Write one row in a transaction."""
    from django.db import transaction

    from tests.benchmarks.work.models import Effect

    with transaction.atomic():
        Effect.objects.create(job_id=n)
    mark()


def start() -> None:
    """Let models and tasks be imported."""
    import django

    django.setup()


def in_transaction() -> contextlib.AbstractContextManager[object]:
    """Return a transaction, so that setting a queue up does not take a commit for each job."""
    from django.db import transaction

    start()
    return transaction.atomic()
