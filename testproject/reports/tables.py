"""Plain text tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a titled table with aligned columns; numbers stand to the right."""
    body = [list(row) for row in rows]
    cells = [list(headings), *([str(value) for value in row] for row in body)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [
        bool(column) and all(isinstance(value, int) for value in column)
        for column in (zip(*body, strict=True) if body else [()] * len(headings))
    ]
    lines = [_line(line, widths, right) for line in cells]
    rule = "-" * len("  ".join("-" * width for width in widths))
    return "\n".join([title, lines[0], rule, *(lines[1:] or ["(none)"])])


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        text.rjust(width) if to_right else text.ljust(width)
        for text, width, to_right in zip(texts, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()
