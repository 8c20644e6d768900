"""Text that cannot disturb whoever reads it: no control character, no line break, nothing hidden.

Names of queues and types come from everybody who may INSERT a job, and messages from anywhere. A
terminal obeys control characters (U+009B begins a sequence as well as ESC does), readers of logs
end a line at U+0085 or U+2028, and U+202E shows what follows backwards.
"""

from __future__ import annotations

import json

__all__ = ["printable", "printable_json"]


def printable(text: str) -> str:
    """Return text with everything that a terminal could obey, or hide, as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def printable_json(text: str) -> str:
    """Return JSON of one line with the same characters as JSON's escapes: the same value."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
