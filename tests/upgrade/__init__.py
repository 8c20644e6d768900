"""What each release has written, kept in a folder of its name: its schema, its rows, its log.

`make snapshot` writes the folder of the version that is about to be released; docs/releasing.md
says when. The tests hold every later version to all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RELEASES = sorted(path.name for path in HERE.iterdir() if path.name[0].isdigit())


def read(release: str, name: str) -> Any:
    """Return one of a release's files."""
    return json.loads((HERE / release / f"{name}.json").read_text(encoding="utf-8"))


def write(release: str, name: str, content: Any) -> None:
    """Write one of a release's files."""
    folder = HERE / release
    folder.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
    (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
