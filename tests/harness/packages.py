"""System packages: what is missing for a database, and installing it with apt, by name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.harness.interpreters import Interpreter
from tests.harness.problems import Problem, say

#: Programs of servers are often outside an ordinary user's PATH.
SYSTEM_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])
POSTGRES_PROGRAMS = Path("/usr/lib/postgresql")
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

#: What clusters are called where databases have names.
CLUSTERS = ("galera", "group-replication")

_NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/leasequeue-tests.conf")


def find_program(name: str) -> str | None:
    """Return the path of an installed program, or None."""
    return shutil.which(name, path=SYSTEM_PATH)


def galera_provider() -> Path | None:
    """Return the library by which MariaDB is a node of a Galera cluster, or None."""
    return next(Path("/usr/lib").glob("**/libgalera_smm.so"), None)


def missing_for(database: str, pythons: Iterable[Interpreter]) -> list[str]:
    """Return the system packages that tests on this database still need."""
    names = [] if Path("/usr/share/zoneinfo/UTC").exists() else ["tzdata"]
    names += _missing_for_each(pythons, "venv", "import ensurepip, venv")
    if database not in ("sqlite", "redis") and not list(
        Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    ):
        names.append("libfaketime")  # a worker's host clock is moved where a server keeps the time
    if database in ("mariadb", "mysql", *CLUSTERS):
        names += _missing_compiler(pythons)
    if database in ("mariadb", "galera") and not _external(database):
        names += [] if find_program("mariadbd") else ["mariadb-server-core"]
        names += [] if find_program("mariadb") else ["mariadb-client-core"]
    if database == "mariadb":  # what is tried once for all is tried on this one
        programs = {"chromium": "chromium", "chromedriver": "chromium-driver", "spin": "spin"}
        names += [package for program, package in programs.items() if not find_program(program)]
    if database == "galera" and not galera_provider():
        names.append("galera-4")
    real = database in ("mysql", "group-replication") and not _external(database)
    if real and not DEBIAN_KEYRING.exists():
        names.append("debian-archive-keyring")
    if database == "postgres" and not _external(database):
        names += [] if list(POSTGRES_PROGRAMS.glob("*/bin/initdb")) else ["postgresql"]
    if database == "redis":
        # It holds the server's program too; the package of that name would start a service.
        names += [] if find_program("redis-check-rdb") else ["redis-tools"]
    return names


def _external(database: str) -> bool:
    return bool(os.environ.get(f"LEASEQUEUE_TEST_{database.upper()}_URL"))


def _missing_compiler(pythons: Iterable[Interpreter]) -> list[str]:
    """Return what compiling mysqlclient, which has no Linux wheel, still needs."""
    names = [] if find_program("gcc") else ["gcc"]
    if not find_program("pkg-config"):
        names.append("pkg-config")
    if not any(_runs("pkg-config", "--exists", name) for name in ("mysqlclient", "libmariadb")):
        names.append("default-libmysqlclient-dev")
    header = "sysconfig.get_path('include') + '/Python.h'"
    return names + _missing_for_each(pythons, "dev", f"import sysconfig; open({header})")


def _missing_for_each(pythons: Iterable[Interpreter], package: str, code: str) -> list[str]:
    lacking = [python for python in pythons if not _runs(python.program, "-c", code)]
    return [f"python{python.minor}-{package}" for python in lacking]


def install(names: Sequence[str]) -> None:
    """Install packages with apt-get, as root or through sudo. Raises Problem when it cannot."""
    if not names:
        return
    wanted = " ".join(names)
    command = f"apt-get install --no-install-recommends {wanted}"
    if not find_program("apt-get"):
        raise Problem(f"needs what Debian calls: {wanted} (there is no apt-get here)")
    if os.geteuid() != 0 and not find_program("sudo"):
        raise Problem(f"needs root once: {command}")
    say(f"installing system packages with apt-get: {wanted}")
    root("apt-get", "update", "-qq")
    without_cluster = "postgresql" in names and not _NO_CLUSTER.exists()
    if without_cluster:
        # The tests make a private cluster; the system is not to get a running one from them.
        root("mkdir", "-p", str(_NO_CLUSTER.parent))
        root("tee", str(_NO_CLUSTER), text="create_main_cluster = false\n")
    try:
        root("apt-get", "install", "-qq", "-y", "--no-install-recommends", *names)
    finally:
        if without_cluster:
            root("rm", "-f", str(_NO_CLUSTER))


def root(*command: str, text: str = "") -> None:
    """Run a command as root, quietly. Raises Problem with its last words when it fails."""
    prefix = [] if os.geteuid() == 0 else ["sudo"]
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"]
    answer = subprocess.run(
        [*prefix, *environment, *command],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        last = "\n".join(answer.stdout.splitlines()[-15:])
        raise Problem(f"{' '.join(command)} failed:\n{last}")


def _runs(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
