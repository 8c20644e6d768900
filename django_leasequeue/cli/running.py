"""Running a sub-command: what ends it is said in one line, and is an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import Error, IntegrityError, connections
from django.db.utils import DataError

from django_leasequeue.cli.base import PROBLEM, REFUSED
from django_leasequeue.cli.output import Output, printable
from django_leasequeue.cli.table import load
from django_leasequeue.conf import get_conf
from django_leasequeue.exceptions import LeaseQueueError

__all__ = ["run_subcommand"]

_MOST_TEXT = 300


def run_subcommand(options: Mapping[str, Any], out: Output) -> int:
    """Run `options["subcommand"]` and return its exit code.

    Raises CommandError, without a traceback for the reader, for what is refused and when the
    database is away; with `--traceback` Django shows what it came from.
    """
    command = load(options["subcommand"])
    told = dict(options)
    with _explained(told):
        if command.takes_database:
            told["database"] = _alias(options["database"])
        code = command.run(told, out)
    out.flush()
    return code


def _alias(given: str | None) -> str:
    alias = get_conf().DATABASE if given is None else given
    if alias not in connections:
        known = ", ".join(sorted(connections))
        raise CommandError(
            f"--database: {alias!r} is no alias in DATABASES. Known: {known}.", returncode=REFUSED
        )
    return alias


@contextmanager
def _explained(options: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except (LeaseQueueError, ImproperlyConfigured) as error:
        raise CommandError(printable(str(error)), returncode=REFUSED) from error
    except Error as error:
        alias = options.get("database")
        raise CommandError(
            f"The database{f' {alias!r}' if alias else ''} cannot be used: {_said(error)}",
            returncode=PROBLEM,
        ) from error


def _said(error: Error) -> str:
    """Return what the database said, but no values of rows, which these two errors quote."""
    name = type(error).__name__
    if isinstance(error, IntegrityError | DataError):
        return name
    text = " ".join(str(error).split())[:_MOST_TEXT]
    return printable(f"{name}: {text}")
