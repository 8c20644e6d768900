"""A row of small bars, drawn here: an SVG without styles or scripts, its colours from a class."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

__all__ = ["sparkline"]

_WIDTH, _HEIGHT = 4, 20


def sparkline(values: Sequence[int], title: str) -> SafeString:
    """Return an SVG of one bar for each value; `title` says the same to a screen reader."""
    top = max([*values, 1])
    bars = (
        (number * _WIDTH, _HEIGHT - height, _WIDTH - 1, height)
        for number, value in enumerate(values)
        if (height := -(-value * _HEIGHT // top))
    )
    return format_html(
        '<svg class="leasequeue-sparkline" role="img" aria-label="{}" width="{}" height="{}" '
        'viewBox="0 0 {} {}"><title>{}</title>{}</svg>',
        title,
        len(values) * _WIDTH,
        _HEIGHT,
        len(values) * _WIDTH,
        _HEIGHT,
        title,
        format_html_join("", '<rect x="{}" y="{}" width="{}" height="{}"></rect>', bars),
    )
