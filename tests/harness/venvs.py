"""Virtual environments with this checkout installed, made once and renewed when it changes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.harness import packages
from tests.harness.interpreters import Environment, Interpreter
from tests.harness.problems import Problem, say

CHECKOUT = Path(__file__).resolve().parents[2]
VENVS = CHECKOUT / ".cache" / "venvs"
#: Marks an environment as made here, and says from what.
STAMP = "installed-for.txt"


def for_tests(environment: Environment, extras: set[str]) -> Path:
    """Return the python program of the environment that runs the suite."""
    django = environment.django.partition(">=")[2].partition(",")[0]
    folder = VENVS / f"python{environment.python.minor}-django{django}"
    return ensure(folder, environment.python, extras, environment.django)


def ensure(folder: Path, python: Interpreter, extras: set[str], *requirements: str) -> Path:
    """Return the python program of `folder`, which has the checkout with these extras.

    An environment that was made from the same pyproject.toml with the same wishes is used as it
    is; one made for other extras gets both.
    """
    stamp = folder / STAMP
    made_for = stamp.read_text().splitlines() if stamp.exists() else []
    extras = extras | set(made_for[1].split(",") if len(made_for) > 1 else []) - {""}
    wish = [_fingerprint(python, requirements), ",".join(sorted(extras))]
    program = folder / "bin" / "python"
    if made_for == wish and program.exists():
        return program
    if not made_for or made_for[0] != wish[0]:
        _create(folder, python)
    what = f".[{wish[1]}]" if extras else "."
    say(f"installing {what} {' '.join(requirements)} into {folder.relative_to(CHECKOUT)}")
    _run(str(program), "-m", "pip", "install", "-q", "-e", what, *requirements)
    stamp.write_text("\n".join(wish))
    return program


def _fingerprint(python: Interpreter, requirements: tuple[str, ...]) -> str:
    text = (CHECKOUT / "pyproject.toml").read_text()
    parts = [text, str(CHECKOUT), python.program, str(python.version)]
    return hashlib.sha256("\0".join([*parts, *requirements]).encode()).hexdigest()


def _create(folder: Path, python: Interpreter) -> None:
    if folder.exists() and not (folder / STAMP).exists():
        raise Problem(f"{folder} was not made by this program: move it away or remove it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / STAMP).touch()
    packages.install(packages.missing_for("sqlite", [python]))
    say(f"making {folder.relative_to(CHECKOUT)} with Python {python.minor} ({python.program})")
    _run(python.program, "-m", "venv", str(folder))


def _run(*command: str) -> None:
    answer = subprocess.run(
        command,
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise Problem(f"{' '.join(command)} failed:\n{answer.stdout}")
