"""Whether the database holds every text, and says so when it does not."""

from __future__ import annotations

from collections.abc import Iterator

from django_leasequeue.core.inspection.server import Column
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.findings import Finding, Kind
from django_leasequeue.fields import HexField

__all__ = ["character_sets", "column_sets", "modes"]

SETS = Kind(
    "leasequeue.W008",
    "text",
    "Have utf8mb4 in the database (ALTER DATABASE … CHARACTER SET utf8mb4) and in "
    "OPTIONS['charset']; UTF8 on PostgreSQL.",
)
COLUMNS = Kind(
    "leasequeue.W009",
    "text",
    "Run ALTER TABLE … MODIFY each with CHARACTER SET utf8mb4. Not CONVERT TO: it would change "
    "the columns that are ASCII or compare exactly.",
)
NOT_STRICT = Kind(
    "leasequeue.W010",
    "text",
    "Add STRICT_TRANS_TABLES to sql_mode on the server or in OPTIONS['init_command'].",
)
MODES = Kind(
    "leasequeue.W011",
    "text",
    "Take it out of sql_mode: the queue is not tried with it.",
)
_STRICT = {"STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"}
#: They change what a text, a comparison or an operator means.
_UNTRIED = {"EMPTY_STRING_IS_NULL", "HIGH_NOT_PRECEDENCE", "ORACLE", "PAD_CHAR_TO_FULL_LENGTH"}


def character_sets(case: Case) -> Iterator[Finding]:
    """The database or the connection cannot hold every text."""
    if sets := case.server.narrow_sets(case.variables):
        named = ", ".join(f"{what} has {name}" for what, name in sets.items())
        yield SETS.found(
            f"Not every text can be stored: {named}. The others are refused, or, in the errors "
            "of an attempt and in all that MySQL is sent, replaced by a '?'."
        )


def column_sets(case: Case) -> Iterator[Finding]:
    """A column of the queue cannot hold every text, and is not meant to be ASCII."""
    found = case.server.column_sets(case.connection, list(case.models))
    ascii_by_design = {
        Column(table, str(one.column))
        for table, model in case.models.items()
        for one in model._meta.concrete_fields
        if isinstance(one, HexField)
    }
    if narrow := sorted(set(found) - ascii_by_design):
        named = ", ".join(f"{one.table}.{one.name} ({found[one]})" for one in narrow)
        yield COLUMNS.found(f"Columns that cannot hold every text: {named}.")


def modes(case: Case) -> Iterator[Finding]:
    """The server cuts values off without an error, or reads SQL in an unusual way."""
    found = case.server.modes(case.variables)
    if found is None:
        return
    if not found & _STRICT:
        yield NOT_STRICT.found(
            "The sql_mode of the project's sessions is not strict: what does not fit is cut off "
            "and stored without an error."
        )
    if untried := sorted(found & _UNTRIED):
        yield MODES.found(f"The sql_mode of the project's sessions has {', '.join(untried)}.")
