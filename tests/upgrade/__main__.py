"""`make snapshot`: keep what the version in version.py writes, before it is released."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from unittest import mock

import django
from django.core.management import call_command
from django.db import connection
from django.test import override_settings


def main() -> None:
    """Play the scenario on a new SQLite database, and write the version's folder."""
    from django_leasequeue import __version__
    from tests.test_docs import logged_events
    from tests.upgrade import handlers, write
    from tests.upgrade.rows import dump
    from tests.upgrade.scenario import play
    from tests.upgrade.schema import migrations, schema_after

    tag = f"v{__version__}"
    if subprocess.run(["git", "tag", "--list", tag], capture_output=True, check=False).stdout:
        sys.exit(f"{tag} is released: what it wrote stays. Set the next version in version.py.")
    call_command("migrate", verbosity=0)
    host = mock.patch("socket.gethostname", return_value="shop")
    with host, override_settings(LEASEQUEUE=handlers.LEASEQUEUE):
        seen = play(connection)
        write(__version__, "rows", dump(connection))
    names = migrations()
    write(__version__, "schema", {"migrations": names, "tables": schema_after(names[-1])})
    events = {event: sorted(fields) for event, fields in logged_events().items()}
    write(__version__, "log", events)
    write(__version__, "seen", seen)
    sys.stdout.write(f"tests/upgrade/{__version__} is what this version writes\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/snapshot.sqlite3"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "testproject.settings")
        django.setup()
        main()
        connection.close()
