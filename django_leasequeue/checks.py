"""System checks: the diagnoses that need no server, and with `check --database` the quick ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register  # noqa: A004
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_leasequeue.conf import get_conf
from django_leasequeue.doctor import configuration
from django_leasequeue.doctor.case import Case
from django_leasequeue.doctor.diagnoses import QUICK
from django_leasequeue.doctor.examine import diagnose, look_at_project, unsupported
from django_leasequeue.doctor.findings import Finding, Severity

__all__ = ["check_database", "check_project"]

_MESSAGES: dict[Severity, type[Error | Warning | Info]] = {
    Severity.ERROR: Error,
    Severity.WARNING: Warning,
    Severity.NOTE: Info,
}


@register("leasequeue")
def check_project(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Settings, middleware, job types, routers, foreign keys to Job, leases; asks no server."""
    wrong = list(configuration.settings())
    return _messages(wrong or look_at_project())


@register(Tags.database)
def check_database(
    app_configs: Sequence[AppConfig] | None = None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """Version, engines, isolation, character sets, modes of the queue's database, if asked for.

    `migrate` asks for it too: no table is made that could not hold a queue.
    """
    try:
        alias = get_conf().DATABASE
    except (ImproperlyConfigured, ImportError):
        return []  # check_project says it
    if not databases or alias not in databases:
        return []
    case = Case(alias, connections[alias], connections[alias])
    try:
        case.server  # noqa: B018
    except NotImplementedError as error:
        return _messages([unsupported(error)])
    return _messages(diagnose(case, QUICK))


def _messages(findings: Iterable[Finding]) -> list[CheckMessage]:
    return [
        _MESSAGES[one.kind.severity](one.what, hint=one.hint, id=one.kind.id) for one in findings
    ]
