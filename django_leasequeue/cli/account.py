"""Who is at the command line, as far as the machine knows."""

from __future__ import annotations

import getpass

__all__ = ["account"]


def account() -> str:
    """Return the account's name, "" for a number without a name, in a container say."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
