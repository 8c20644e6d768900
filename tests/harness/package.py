"""`make package`: wheel and sdist built, looked into, and installed where there is nothing else."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.harness import package_contents, package_trial, release, venvs
from tests.harness.interpreters import find_all, oldest_and_newest
from tests.harness.problems import Problem, say

AT_ONCE = 2
DIST = venvs.CHECKOUT / "dist"


def make(options: argparse.Namespace) -> int:
    """Build into `dist`, check what is in it, and try it in clean environments.

    The wheel comes out of the sdist, and has to be the one that the checkout makes. Raises
    Problem with what is wrong.
    """
    if options.tag:
        release.check(options.tag)
    program = str(venvs.ensure(venvs.CHECKOUT / ".venv", find_all()[-1], {"dev"}))
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        say("building the sdist, and the wheel from it")
        _run(program, "-m", "build", "--outdir", str(DIST))
        _run(program, "-m", "build", "--wheel", "--outdir", folder)
        wheel, sdist = _only(DIST, "*.whl"), _only(DIST, "*.tar.gz")
        _run(program, "-m", "twine", "check", "--strict", str(wheel), str(sdist))
        package_contents.check(wheel, sdist, _only(Path(folder), "*.whl"))
    environments = [
        item for item in oldest_and_newest(options.only_python) if item.name != "middle"
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        trials = [
            pool.submit(package_trial.install_and_run, environment, source, wheel)
            for source in (sdist, wheel)
            for environment in environments
        ]
    for trial in trials:
        trial.result()
    say(f"{wheel.name} and {sdist.name} are in {DIST.relative_to(venvs.CHECKOUT)}")
    return 0


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise Problem(f"one {pattern} was to be built, but there are {len(found)}")
    return found[0]


def _run(*command: str) -> None:
    answer = subprocess.run(
        command,
        cwd=venvs.CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        last = "\n".join(answer.stdout.splitlines()[-30:])
        raise Problem(f"{' '.join(command)} failed:\n{last}")
