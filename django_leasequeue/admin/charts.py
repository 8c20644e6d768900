"""Bars of what ended well and badly, drawn here: an SVG without styles or scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_leasequeue.core.recent import Bucket

__all__ = ["bars"]

_STEP = 10


def bars(buckets: Sequence[Bucket], title: str, height: int = 24) -> SafeString:
    """Return one bar for each bucket, what ended badly on top; `title` says it in words."""
    width = len(buckets) * _STEP
    return format_html(
        '<svg class="leasequeue-bars" role="img" aria-label="{}" width="{}" height="{}" '
        'viewBox="0 0 {} {}"><title>{}</title>{}'
        '<path class="leasequeue-axis" d="M0 {}H{}"></path></svg>',
        title,
        width,
        height,
        width,
        height,
        title,
        format_html_join(
            "",
            '<rect class="leasequeue-{}" x="{}" y="{}" width="{}" height="{}"></rect>',
            _rectangles(buckets, height - 1),
        ),
        height - 0.5,
        width,
    )


def _rectangles(buckets: Sequence[Bucket], height: int) -> Iterator[tuple[str, int, int, int, int]]:
    top = max(1, *(sum(bucket) for bucket in buckets))
    for number, bucket in enumerate(buckets):
        # However little ended badly, it is seen.
        badly = -(-bucket.badly * height // top)
        well = min(height - badly, -(-bucket.well * height // top))
        if well:
            yield "well", number * _STEP, height - well, _STEP - 2, well
        if badly:
            yield "badly", number * _STEP, height - well - badly, _STEP - 2, badly
