"""What has to be there before a version is released; docs/releasing.md says why."""

from __future__ import annotations

import re
from pathlib import Path

from tests.harness.problems import Problem
from tests.harness.venvs import CHECKOUT


def version_here(checkout: Path = CHECKOUT) -> str:
    """Return the version that version.py says; nothing else says one."""
    text = _read(checkout / "django_leasequeue" / "version.py")
    if found := re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE):
        return found[1]
    raise Problem("django_leasequeue/version.py has no __version__")


def check(tag: str, checkout: Path = CHECKOUT) -> None:
    """Raise Problem with all that a release of this tag lacks."""
    version = version_here(checkout)
    lacks = []
    if tag != f"v{version}":
        lacks.append(f"the tag {tag} is not v{version}, the version in version.py")
    if not re.search(
        rf"^## \[?{re.escape(version)}\b", _read(checkout / "CHANGELOG.md"), re.MULTILINE
    ):
        lacks.append(f"CHANGELOG.md has no notes headed {version}")
    if not (checkout / "tests" / "upgrade" / version).is_dir():
        lacks.append(f"tests/upgrade/{version} does not hold what this version wrote")
    if not re.search(r"^\[project\.urls\]$", _read(checkout / "pyproject.toml"), re.MULTILINE):
        lacks.append("pyproject.toml has no [project.urls]: where source and issues are")
    if lacks:
        raise Problem("\n".join(["not ready for a release:", *lacks]))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
