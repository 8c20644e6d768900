"""Every page: on a phone, in both colour schemes, under a strict policy, and without scripts."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_leasequeue import add_schedule, enqueue, pause
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, Job, JobAttempt, Schedule, Worker
from tests.core.bulk import bury

A = "a" * 16
LONG = "a-very-long-name-without-any-place-to-break-it-" * 3


@pytest.fixture
def addresses(site) -> list[str]:
    """Make rows with long names, and return the address of every page."""
    (job_id,) = bury(1, LONG, fingerprint=A, last_error=f"Error: {LONG * 5}", queue_name="q" * 64)
    JobAttempt.objects.create(
        job_id=job_id, number=1, token=b"t" * 16, outcome="failed", frames=[f"{LONG}.py:9 send"]
    )
    enqueue("proc.note", {"text": LONG}, queue="waiting")
    pause("waiting", by="root", reason=LONG)
    add_schedule("nightly", LONG, cron="0 6 * * *", timezone="Europe/Belgrade")
    run = BulkRun.objects.create(operation="requeue", by="root", state="done", filter={})
    schedule = Schedule.objects.get().pk
    shown = workers(job_id)
    return [
        "",
        "job/",
        f"job/{job_id}/change/",
        f"job/{Job.objects.get(status='ready').pk}/change/",
        "deadgroup/",
        f"deadgroup/group/?fingerprint={A}&type={LONG}",
        "deadgroup/requeue/confirm/",
        f"job/{job_id}/payload/",
        "queue/",
        "worker/",
        f"worker/{shown[0].pk}/change/",
        "bulkrun/",
        f"bulkrun/{run.pk}/",
        "schedule/",
        f"schedule/{schedule}/change/",
        "schedule/add/",
    ]


def workers(job_id: int) -> list[Worker]:
    """Make a worker that runs, one that drains, and one that may be gone, each with long names."""
    held = {"id": job_id, "type": LONG, "since": timezone.now().isoformat()}
    states: list[dict[str, Any]] = [
        {},
        {"drain_requested_at": UtcNow()},
        {"seen_at": UtcNow() - timedelta(minutes=5)},
    ]
    return [
        Worker.objects.create(
            name=f"{number}-{LONG}",
            host=f"host-{LONG}",
            pid=number,
            version="1.0",
            queues=["q" * 64, "waiting"],
            children=2,
            current_jobs=[held] * 25,
            **state,
        )
        for number, state in enumerate(states)
    ]


def test_nothing_is_wider_than_a_phone_nor_refused_by_the_policy(site, addresses):
    site.driver.set_window_size(520, 800)
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    site.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        wide, refused = [], []
        for address in addresses:
            site.open(address)
            site.one("#content")
            if address == "worker/":
                assert len(site.all(".leasequeue-table tbody tr")) == 3
            root = "document.documentElement"
            width = site.script(f"return {root}.scrollWidth - {root}.clientWidth")
            wide += [address] if width > 0 else []
            refused += [(address, what) for what in site.script("return window.refusedByPolicy")]
    finally:
        site.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        site.driver.set_window_size(1200, 900)
    assert (wide, refused) == ([], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out(site, addresses, scheme):
    feature = {"name": "prefers-color-scheme", "value": scheme}
    site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        faint = []
        for address in addresses:
            site.open(address)
            site.one("#content")
            faint += [
                (address, *each) for each in site.script(COLOURS) if contrast(*each[1:]) < 4.5
            ]
    finally:
        site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert faint == []


def test_without_scripts(visit, addresses):
    from tests.browser.chromium import chromium

    bury(600, "proc.note")
    with chromium(scripts=False) as driver:
        plain = visit(driver)
        plain.open("")
        plain.reads("waiting")
        plain.open("queue/")
        plain.reads("paused")
        plain.open("deadgroup/")
        plain.one("#requeue-all").click()
        plain.fill("#id_reason", "no scripts here")
        plain.one("#confirm").click()
        while plain.one("#run-changed").text != "601":
            plain.one("#bulk-go input[type=submit]").click()
    assert set(Job.objects.values_list("status", flat=True)) == {"ready"}


#: Own texts of our parts of a page, with their colour and that of the nearest background.
COLOURS = """
const clear = (colour) => /, 0\\)$/.test(colour) || colour === "transparent";
const ground = (node) => {
    while (node) {
        const colour = getComputedStyle(node).backgroundColor;
        if (!clear(colour)) { return colour; }
        node = node.parentElement;
    }
    return "rgb(255, 255, 255)";
};
return Array.from(document.querySelectorAll(".leasequeue *, .leasequeue-status"))
    .filter((node) => node.offsetParent !== null && !node.closest("[disabled]"))
    .filter((node) => Array.from(node.childNodes).some(
        (child) => child.nodeType === 3 && child.textContent.trim()))
    .map((node) => [
        node.textContent.trim().slice(0, 40), getComputedStyle(node).color, ground(node)]);
"""


def contrast(colour: str, ground: str) -> float:
    """Return the contrast of two colours, from 1 to 21, as WCAG 2 has it."""
    lighter, darker = sorted((_luminance(colour), _luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
