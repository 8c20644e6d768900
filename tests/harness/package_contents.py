"""What is in the wheel and the sdist: each file of the package, and nothing that is not ours."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.harness.problems import Problem
from tests.harness.release import version_here
from tests.harness.venvs import CHECKOUT

PACKAGE = CHECKOUT / "django_leasequeue"
#: By kind, what a project would miss. All other files are compared with the checkout.
NEEDED = (
    "django_leasequeue/py.typed",
    "django_leasequeue/migrations/0001_initial.py",
    "django_leasequeue/templates/admin/leasequeue/app_index.html",
    "django_leasequeue/static/leasequeue/live.css",
    "django_leasequeue/static/leasequeue/live.js",
    "django_leasequeue/management/commands/runworker.py",
    "django_leasequeue/locale/de/LC_MESSAGES/django.mo",
    "django_leasequeue/locale/fr/LC_MESSAGES/django.mo",
)
#: What whoever builds, tests or reads from the sdist would miss.
NEEDED_FOR_BUILDING = (
    *NEEDED,
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "Makefile",
    "docs/index.md",
    "tests/conftest.py",
    "testproject/manage.py",
)


def check(wheel: Path, sdist: Path, direct: Path) -> None:
    """Raise Problem unless both hold what they must, and `direct`, made without the sdist, equals.

    Their version is that of version.py.
    """
    version = version_here()
    files = _wheel_files(wheel)
    info = f"django_leasequeue-{version}.dist-info"
    found = {name for name in files if not name.startswith(f"{info}/")}
    _say_no("lacks", wheel, set(_sources()) - found)
    _say_no("should not have", wheel, found - set(_sources()))
    _say_no("lacks", wheel, {*NEEDED, f"{info}/licenses/LICENSE"} - set(files))
    _check_metadata(wheel, info, version)
    differing = files.items() ^ _wheel_files(direct).items()
    _say_no("has, other than without the sdist,", wheel, {name for name, _sum in differing})
    inside = set(_sdist_files(sdist, f"django_leasequeue-{version}/"))
    _say_no("lacks", sdist, set(NEEDED_FOR_BUILDING) - inside)
    _say_no("should not have", sdist, filter(_is_made, inside))


def _sources() -> Iterator[str]:
    for path in PACKAGE.rglob("*"):
        if path.is_file() and not _is_made(path.name) and "__pycache__" not in path.parts:
            yield path.relative_to(CHECKOUT).as_posix()


def _is_made(name: str) -> bool:
    """Tell whether a file is made by running the project, or private to a checkout."""
    return bool(
        re.search(r"__pycache__|^docs/_build/|\.pyc$|\.sqlite3|^\.(git|venv|cache)/|~$", name)
    )


def _wheel_files(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file; that of RECORD says no more than the others do."""
    with zipfile.ZipFile(wheel) as archive:
        return {item.filename: item.CRC for item in archive.infolist() if not item.is_dir()}


def _check_metadata(wheel: Path, info: str, version: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"{info}/METADATA").decode()
    lines = set(text.partition("\n\n")[0].splitlines())
    wanted = {
        "Name: django-leasequeue",
        f"Version: {version}",
        "License-Expression: MIT",
        "License-File: LICENSE",
        "Requires-Python: >=3.11",
        "Description-Content-Type: text/markdown",
    }
    _say_no("does not say", wheel, wanted - lines)


def _sdist_files(sdist: Path, top: str) -> Iterator[str]:
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            if not member.name.startswith(top):
                raise Problem(f"{sdist.name} has {member.name}, which is not below {top}")
            yield member.name[len(top) :]


def _say_no(what: str, archive: Path, names: Iterable[str]) -> None:
    if wrong := sorted(names):
        raise Problem(f"{archive.name} {what} {', '.join(wrong[:20])}")
