"""Fetching the real MySQL: Debian's packages, verified by apt, unpacked beside the system.

Debian has MySQL in its unstable suite only. Its programs run through the C library that is
unpacked with them, so the system's own is neither used nor touched and root is not needed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.harness.packages import DEBIAN_KEYRING, find_program
from tests.harness.problems import Problem, say

SUITE = "sid"
WANTED = ("mysql-server-core", "mysql-client-core")
PROGRAMS = {"mysqld", "mysql", "mysql_tzinfo_to_sql"}
#: Needed by maintainer scripts and Perl tools only.
UNWANTED = re.compile(
    r"(perl|libperl|libdb5|libgdbm|gcc-\d+-base|libc-gconv|libcrypt1|openssl-provider|libbz2)"
)
PUBLIC_MIRROR = "http://deb.debian.org/debian"


def _cache() -> Path:
    """Where the programs stay for later runs: $LEASEQUEUE_TEST_CACHE, or a usual place."""
    if chosen := os.environ.get("LEASEQUEUE_TEST_CACHE"):
        return Path(chosen)
    if os.geteuid() == 0:
        # The server runs as nobody, who cannot look into root's home.
        return Path("/var/cache/django-leasequeue")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "django-leasequeue"


ROOT = _cache() / "mysql"


def ensure() -> None:
    """Unpack MySQL into the cache unless it is there. Raises Problem when it cannot be had."""
    if ROOT.exists():
        return
    if not find_program("apt-get") or not find_program("dpkg-deb"):
        raise Problem("MySQL is taken from Debian's packages: set LEASEQUEUE_TEST_MYSQL_URL here")
    if not DEBIAN_KEYRING.exists():
        raise Problem("MySQL's packages are verified with debian-archive-keyring: install that")
    ROOT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mysql-", dir=ROOT.parent) as folder:
        work = Path(folder)
        packages = _download(work)
        say(f"unpacking {len(packages)} packages of MySQL into {ROOT}")
        unpacked = work / "root"
        for package in packages:
            _call("dpkg-deb", "-x", str(package), str(unpacked))
        _strip(unpacked)
        # Whole or not at all, also when two runs do this at once.
        try:
            unpacked.rename(ROOT)
        except OSError:
            if not ROOT.exists():
                raise


def program(name: str) -> list[str]:
    """Return the command that runs an unpacked program through its own loader."""
    path = next(ROOT.glob(f"usr/*bin/{name}"))
    loader = next(ROOT.glob("usr/lib/*/ld-linux*.so.*"))
    libraries = f"{loader.parent}:{ROOT}/usr/lib/mysql/private"
    return [str(loader), "--library-path", libraries, "--argv0", str(path), str(path)]


def unpacked(name: str) -> list[str] | None:
    """Return the command for an unpacked program, or None where MySQL was not fetched."""
    return program(name) if ROOT.exists() else None


def _download(work: Path) -> list[Path]:
    for folder in ("lists/partial", "cache/archives/partial", "state", "debs"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()
    source = f"deb [signed-by={DEBIAN_KEYRING}] {_mirror()} {SUITE} main\n"
    (work / "sources.list").write_text(source)
    say(f"reading the package index of Debian {SUITE} for MySQL")
    apt = ["apt-get", *_apt_options(work)]
    _call(*apt, "-qq", "-o", "APT::Update::Error-Mode=any", "update")
    plan = _call(*apt, "--simulate", "install", *WANTED)
    names = re.findall(r"^Inst (\S+) \((\S+)", plan, re.MULTILINE)
    chosen = [f"{name}={version}" for name, version in names if not UNWANTED.match(name)]
    _call(*apt, "-qq", "download", *chosen, cwd=work / "debs")
    return sorted((work / "debs").glob("*.deb"))


def _apt_options(work: Path) -> list[str]:
    """Settings under which apt sees an empty system, one suite, and folders of its own."""
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": work / "state",
        "Dir::State::Lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "0",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
    }
    return [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]


def _mirror() -> str:
    """Return the Debian mirror of this machine, or the public one (on Ubuntu)."""
    wanted = ("Created-By: Packages", "Origin: Debian", "Label: Debian")
    known = _call("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).split()
    return min(known) if known else PUBLIC_MIRROR


def _strip(root: Path) -> None:
    """Keep the server, its plugins and the few programs that are wanted."""
    for folder in ("etc", "var", *(f"usr/share/{name}" for name in ("doc", "man", "locale"))):
        shutil.rmtree(root / folder, ignore_errors=True)
    for path in (*root.glob("usr/bin/*"), *root.glob("usr/sbin/*")):
        if path.name not in PROGRAMS:
            path.unlink()
    for path in root.glob("usr/lib/*/libtcmalloc*debug*"):
        path.unlink()


def _call(*command: str, cwd: Path | None = None) -> str:
    answer = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if answer.returncode != 0:
        last = "\n".join(answer.stdout.splitlines()[-15:])
        raise Problem(f"{' '.join(command[:1] + command[-4:])} failed:\n{last}")
    return answer.stdout
