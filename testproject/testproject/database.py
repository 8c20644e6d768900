"""The default database from the environment: `DATABASE_URL`, else `DB_*`, else an SQLite file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from testproject.servers import Settings, server, sqlite

__all__ = ["database_from_environment", "database_from_url"]

#: URL scheme, or DB_ENGINE, to Django's backend.
ENGINES = {
    "mysql": "django.db.backends.mysql",
    "mariadb": "django.db.backends.mysql",
    "postgres": "django.db.backends.postgresql",
    "postgresql": "django.db.backends.postgresql",
}
EXAMPLE = "mysql://user:password@127.0.0.1:3306/name"


def database_from_environment(environ: Mapping[str, str], sqlite_file: Path) -> Settings:
    """Return the settings of the default database.

    `DATABASE_URL` wins; else any `DB_*` variable selects a server; else it is `sqlite_file`.
    Raises ImproperlyConfigured, never showing a password, when a value cannot be used.
    """
    if url := environ.get("DATABASE_URL", ""):
        return database_from_url(url)
    names = ("DB_ENGINE", "DB_HOST", "DB_PORT", "DB_NAME", "DB_USER", "DB_PASS")
    if any(name in environ for name in names):
        return _from_parts(environ)
    return sqlite(sqlite_file, {})


def database_from_url(url: str) -> Settings:
    """Return the settings for `scheme://user:password@host:port/name?option=value`.

    Every part may be percent-encoded. SQLite is `sqlite:////absolute/file` or
    `sqlite:///file/in/the/current/folder`. Raises ImproperlyConfigured.
    """
    parts = _split(url)
    options = _query(parts)
    if parts.scheme == "sqlite":
        return sqlite(_sqlite_path(parts), options)
    engine = _engine(parts.scheme, "DATABASE_URL")
    name = unquote(parts.path.removeprefix("/"))
    if not name or "/" in parts.path.removeprefix("/"):
        raise ImproperlyConfigured(f"DATABASE_URL must end in one database name: {EXAMPLE}")
    return server(
        engine,
        options,
        host=_host(parts) or "127.0.0.1",
        port=str(parts.port or ""),
        name=name,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def _split(url: str) -> SplitResult:
    if "#" in url:
        raise ImproperlyConfigured("DATABASE_URL holds a #: write it as %23.")
    try:
        parts = urlsplit(url)
        if parts.scheme != "sqlite":
            parts.port  # noqa: B018 - reading it checks it
    except ValueError:
        # The parser's own message may quote the password.
        raise ImproperlyConfigured(
            f"DATABASE_URL cannot be read. It looks like {EXAMPLE}; percent-encode "
            "each of / ? # @ : [ ] in the user's name and the password."
        ) from None
    return parts


def _host(parts: SplitResult) -> str:
    # Not parts.hostname: it is in lower case, and a host may be the path of a socket.
    host = parts.netloc.rpartition("@")[2]
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return unquote(host.partition(":")[0])


def _query(parts: SplitResult) -> dict[str, str]:
    try:
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ImproperlyConfigured("DATABASE_URL must have its options as ?name=value&…") from None
    if len(dict(pairs)) != len(pairs):
        raise ImproperlyConfigured("DATABASE_URL gives an option twice.")
    return dict(pairs)


def _sqlite_path(parts: SplitResult) -> Path:
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path or ":memory:" in path:
        raise ImproperlyConfigured(
            "DATABASE_URL must name an SQLite file, as sqlite:////absolute/file or "
            "sqlite:///file: workers are processes, and memory is not shared between them."
        )
    return Path(path).absolute()


def _engine(name: str, variable: str) -> str:
    try:
        return ENGINES[name]
    except KeyError:
        known = ", ".join(ENGINES)
        raise ImproperlyConfigured(
            f"{variable} names {name!r}, which is none of: {known}, or sqlite in a URL."
        ) from None


def _from_parts(environ: Mapping[str, str]) -> Settings:
    password = environ.get("DB_PASS", "")
    if not password:
        raise ImproperlyConfigured(
            "DB_PASS is required with DB_HOST, DB_NAME and the others: set it to the database "
            "user's password, or unset every DB_* variable to use the SQLite file."
        )
    engine = _engine(environ.get("DB_ENGINE") or "mysql", "DB_ENGINE")
    port = environ.get("DB_PORT", "")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ImproperlyConfigured(f"DB_PORT must be a port number, not {port!r}.")
    return server(
        engine,
        {},
        host=environ.get("DB_HOST") or "127.0.0.1",
        port=port,
        name=environ.get("DB_NAME") or "report_queue",
        user=environ.get("DB_USER") or "queue_worker",
        password=password,
    )
