"""The workflow files: what they run exists, and they test what pyproject.toml says is supported."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import django
import pytest
import yaml
from django.db.backends.mysql.features import DatabaseFeatures as MySQLFeatures
from django.db.backends.postgresql.features import DatabaseFeatures as PostgreSQLFeatures

from tests.harness import __main__ as harness
from tests.harness import databases, interpreters, release
from tests.harness.problems import Problem
from tests.markdown import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
#: Of each word for an environment, the Django that it is and the Python that this needs.
DJANGOS = {
    "oldest": ("5.2", (3, 11)),
    "middle": ("6.0", (3, 12)),
    "newest": ("6.1", (3, 12)),
}
#: The oldest server that each Django takes.
DJANGO_NEEDS = {
    "5.2": {"mysql": (8, 0, 11), "mariadb": (10, 5), "postgres": (14,)},
    "6.0": {"mysql": (8, 0, 11), "mariadb": (10, 6), "postgres": (14,)},
    "6.1": {"mysql": (8, 4), "mariadb": (10, 11), "postgres": (15,)},
}
SERVERS = {
    "mysql": {"8.4", "9"},
    "mariadb": {"10.6", "10.11", "11.4", "11.8", "12"},
    "postgres": {"14", "15", "16", "17", "18"},
}


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))["jobs"]
    return found


CI = jobs("ci.yml")
ENTRIES: list[tuple[str, dict[str, str]]] = [
    (name, entry)
    for name, job in CI.items()
    for entry in job.get("strategy", {}).get("matrix", {}).get("include", [])
]
NAMED = [pytest.param(name, one, id="-".join([name, *one.values()])) for name, one in ENTRIES]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def classified(start: str) -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pattern = re.compile(rf"{re.escape(start)} :: (\d+\.\d+)")
    return {found[1] for one in settings["project"]["classifiers"] if (found := pattern.match(one))}


def test_the_words_for_environments_are_those_djangos():
    asked = {
        "oldest": interpreters.OLDEST_DJANGO,
        "middle": interpreters.MIDDLE_DJANGO,
        "newest": interpreters.NEWEST_DJANGO,
    }
    assert {word: wish.split(">=")[1].split(",")[0] for word, wish in asked.items()} == {
        word: version for word, (version, _python) in DJANGOS.items()
    }
    assert set(harness.PYTHONS) == set(DJANGOS)


def test_this_django_takes_the_servers_that_the_table_says():
    def least(mariadb: bool) -> Any:
        features = SimpleNamespace(connection=SimpleNamespace(mysql_is_mariadb=mariadb))
        return MySQLFeatures.minimum_database_version.func(features)  # type: ignore[attr-defined]

    assert DJANGO_NEEDS[".".join(map(str, django.VERSION[:2]))] == {
        "mysql": least(mariadb=False),
        "mariadb": least(mariadb=True),
        "postgres": PostgreSQLFeatures.minimum_database_version,
    }


@pytest.mark.parametrize(("name", "entry"), NAMED)
def test_what_a_job_puts_together_goes_together(name, entry):
    for word in entry["pythons"].split(","):
        version, python = DJANGOS[word]
        assert numbers(entry["python"]) >= python
        if name in entry:
            padded = (*numbers(entry[name]), 99)  # a tag such as "9" is its newest release
            assert padded >= DJANGO_NEEDS[version][name]


def test_all_that_is_supported_is_tested():
    pythons = {entry["python"] for _name, entry in ENTRIES}
    assert pythons == classified("Programming Language :: Python")
    djangos = {DJANGOS[word][0] for _name, entry in ENTRIES for word in entry["pythons"].split(",")}
    assert djangos == classified("Framework :: Django")
    for server, versions in SERVERS.items():
        assert {entry[server] for name, entry in ENTRIES if name == server} == versions
    # Every Python with every Django that takes it, on the database that needs no server.
    together = {
        (entry["python"], word)
        for name, entry in ENTRIES
        if name == "sqlite"
        for word in entry["pythons"].split(",")
    }
    assert together == {
        (python, word)
        for python in pythons
        for word, (_django, least) in DJANGOS.items()
        if numbers(python) >= least
    }


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_a_server_is_named_as_the_harness_reads_it(name):
    job = CI[name]
    (service,) = job["services"].values()
    assert service["image"] == f"{name}:${{{{ matrix.{name} }}}}"
    (variable,) = job["env"]
    assert variable == databases.variable(name)


def commands() -> Iterator[tuple[str, str]]:
    for path in sorted(WORKFLOWS.glob("*.yml")):
        for title, job in jobs(path.name).items():
            for step in job.get("steps", ()):
                if "run" in step:
                    yield f"{path.stem}-{title}", step["run"]


@pytest.mark.parametrize(("title", "command"), list(commands()))
def test_what_a_step_runs_exists(title, command):
    job = CI.get(title.partition("-")[2], {})
    (entry, *_) = job.get("strategy", {}).get("matrix", {}).get("include", [{}])
    text = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: entry[found[1]], command)
    program, *arguments = shlex.split(text)
    if program == "make":
        (target,) = arguments
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert [program, *arguments[:2]] == ["python3", "-m", "tests.harness"]
        harness._parser().parse_args(arguments[2:])


def test_every_job_runs_something():
    for path in WORKFLOWS.glob("*.yml"):
        for job in jobs(path.name).values():
            assert "uses" in job or all({"run", "uses"} & step.keys() for step in job["steps"])
    assert jobs("release.yml")["publish"]["needs"] == "build"
    assert jobs("release.yml")["build"]["needs"] == "ci"


def test_a_release_has_all_that_belongs_to_it(tmp_path):
    package = tmp_path / "django_leasequeue"
    package.mkdir()
    (package / "version.py").write_text('__version__ = "1.2.0"\n')
    with pytest.raises(Problem, match=r"v1\.3\.0 is not v1\.2\.0") as refused:
        release.check("v1.3.0", tmp_path)
    assert len(str(refused.value).splitlines()) == 5
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 (2027-01-01)\n")
    (tmp_path / "tests" / "upgrade" / "1.2.0").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nSource = "https://example.org"\n')
    release.check("v1.2.0", tmp_path)
