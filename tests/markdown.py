"""Reading the documentation: headings, links, tables and code blocks of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CELL_BORDER = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Block:
    """A fenced code block; `before` is the last line with text above it, `line` its number."""

    language: str
    code: str
    before: str
    line: int


def pages() -> list[Path]:
    """Return the README, the changelog and every page of docs/."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *docs()]


def docs() -> list[Path]:
    """Return every page of docs/, but for what `make docs` wrote."""
    return sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)


def read(name: str) -> str:
    """Return the text of a page of docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> list[Block]:
    """Return the code blocks of a page, of these languages or of all."""
    return [block for block in _blocks(text) if not languages or block.language in languages]


def _blocks(text: str) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        lines = found["code"].splitlines()
        code = "\n".join(line.removeprefix(found["indent"]) for line in lines)
        above = [line.strip() for line in text[: found.start()].splitlines() if line.strip()]
        number = text.count("\n", 0, found.start()) + 1
        yield Block(found["language"], code, above[-1] if above else "", number)


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Return the targets of a page's links."""
    return _LINK.findall(prose(text))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub and MyST make them."""
    return {anchor_of(heading) for heading in _HEADING.findall(prose(text))}


def anchor_of(heading: str) -> str:
    """Return a heading's anchor: lower case, no punctuation, a hyphen for each space."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def section(text: str, heading: str) -> str:
    """Return what stands under a heading, to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"no heading {heading!r}"
    rest = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def table(text: str, heading: str) -> dict[str, dict[str, str]]:
    """Return the first table under a heading: rows by their first cell, cells by their column.

    Backticks around a whole cell are taken off.
    """
    lines = [line for line in section(text, heading).splitlines() if line.startswith("|")]
    assert lines, f"no table under {heading!r}"
    columns = _cells(lines[0])
    rows = [_cells(line) for line in _first_table(section(text, heading))[2:]]
    assert all(len(row) == len(columns) for row in rows), f"ragged table under {heading!r}"
    assert len({row[0] for row in rows}) == len(rows), f"a row twice under {heading!r}"
    return {row[0]: dict(zip(columns[1:], row[1:], strict=True)) for row in rows}


def _first_table(text: str) -> list[str]:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
    return lines[start:end]


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in _CELL_BORDER.split(line.strip())[1:-1]]
    return [re.sub(r"^`([^`]*)`$", r"\1", cell).replace("\\|", "|") for cell in cells]
