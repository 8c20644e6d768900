"""Looking at everything: each diagnosis by itself, so that none keeps the others from looking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from django.db import DatabaseError, InterfaceError

from django_leasequeue.conf import get_conf
from django_leasequeue.core.inspection.server import NotPermitted
from django_leasequeue.doctor import configuration
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.diagnoses import ON_SERVER, ON_TABLES, WITHOUT_SERVER, Diagnosis
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.doctor.sessions import open_case
from django_leasequeue.doctor.tables import MISSING

__all__ = ["diagnose", "examine", "look_at_project", "unsupported"]

UNSUPPORTED = Kind("leasequeue.E002", "server", "Set LEASEQUEUE['DATABASE'].")
UNREACHABLE = Kind(
    "leasequeue.E008",
    "server",
    "See that the server runs and that HOST, PORT, NAME, USER and PASSWORD are right.",
)
UNSEEN = Kind(
    "leasequeue.I007",
    "unseen",
    "Nothing, or look with an account that may see it.",
)


def examine(alias: str | None = None) -> list[Finding]:
    """Return everything that is found, errors first; `alias` is LEASEQUEUE["DATABASE"] if None.

    Reads only; waits for no lock; no statement takes more than five seconds. Raises nothing of
    what is wrong with the project or the server: that is what is returned.
    """
    if wrong := list(configuration.settings()):
        return wrong
    found = [*look_at_project(), *_look_at_server(alias or get_conf().DATABASE)]
    order = ["E", "W", "I"]
    return sorted(found, key=lambda one: order.index(one.kind.id.rpartition(".")[2][0]))


def look_at_project() -> Iterator[Finding]:
    """Yield what is wrong with the project's settings, routers and models; nothing is asked."""
    return chain.from_iterable(look() for look in WITHOUT_SERVER)


def _look_at_server(alias: str) -> Iterator[Finding]:
    try:
        with open_case(alias) as case:
            found = list(diagnose(case, ON_SERVER))
            yield from found
            if not any(one.kind is MISSING for one in found):
                yield from diagnose(case, ON_TABLES)
    except NotImplementedError as error:
        yield unsupported(error)
    except (DatabaseError, InterfaceError) as error:
        yield UNREACHABLE.found(f"The database {alias!r} cannot be reached: {_first_line(error)}.")


def unsupported(error: NotImplementedError) -> Finding:
    """Return the finding of a database that the queue does not support."""
    return UNSUPPORTED.found(f"{error}.")


def diagnose(case: Case, diagnoses: Iterable[Diagnosis]) -> Iterator[Finding]:
    """Yield what these diagnoses find; what one may not see, or cannot ask, is a note."""
    for diagnosis in diagnoses:
        subject = diagnosis.__name__.replace("_", " ")
        try:
            yield from diagnosis(case)
        except NotPermitted as error:
            yield UNSEEN.found(f"Not looked at: {subject}. It takes {error}.")
        except (DatabaseError, InterfaceError) as error:
            if case.connection.connection is None or not case.connection.is_usable():
                raise
            yield UNSEEN.found(f"Not looked at: {subject}. {_first_line(error)}.")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
