"""`leasequeue doctor`: look at the project, the server and the data, and say what to do."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping
from typing import Any

from django_leasequeue.cli.base import DONE, PROBLEM, REFUSED, SubCommand
from django_leasequeue.cli.output import Output
from django_leasequeue.doctor.examine import examine
from django_leasequeue.doctor.findings import Finding, Severity

__all__ = ["Examine"]


class Examine(SubCommand):
    """Print the findings, the worst first."""

    name = "doctor"
    help = (
        "Looks for what could be wrong with the queue in this project, on this server, with this "
        "data, and says what to do. Reads only, waits for no lock. Run it with the worker's "
        "account: what that may not see is named. Every finding is explained in docs/checks.md."
    )
    examples = """
        manage.py leasequeue doctor
        manage.py leasequeue doctor --json
        manage.py leasequeue doctor --database default
    """
    takes_json = True
    codes = {
        DONE: "nothing is wrong; notes need no action",
        PROBLEM: "there are errors or warnings",
        REFUSED: "the command line was refused",
    }

    def add_arguments(self, parser: ArgumentParser) -> None:
        pass

    def run(self, options: Mapping[str, Any], out: Output) -> int:
        findings = examine(options["database"])
        counts = Counter(one.kind.severity for one in findings)
        if options["json"]:
            out.json(_document(options["database"], findings, counts))
        else:
            _write(findings, counts, out)
        return PROBLEM if counts[Severity.ERROR] + counts[Severity.WARNING] else DONE


def _document(
    database: str, findings: list[Finding], counts: Mapping[Severity, int]
) -> dict[str, Any]:
    return {
        "database": database,
        **{f"{severity.value}s": counts[severity] for severity in Severity},
        "findings": [
            {
                "id": one.kind.id,
                "severity": one.kind.severity.value,
                "what": one.what,
                "do": one.kind.advice,
                "docs": one.docs,
            }
            for one in findings
        ],
    }


def _write(findings: list[Finding], counts: Mapping[Severity, int], out: Output) -> None:
    for one in findings:
        out.line(f"{one.kind.severity.value} {one.kind.id}: {one.what}")
        out.line(f"    {one.hint}")
    out.line(", ".join(f"{severity.value}s: {counts[severity]}" for severity in Severity))
