"""A site at work, for the pictures of the docs; and that each page shows what it is there for."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from django_leasequeue import enqueue_many, pause
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import DeadGroup, Job, JobAttempt, Worker
from tests.core.bulk import bury

#: Width and height of the window.
SIZE = (1400, 900)
REFUSED, MISSING, SLOW = "a" * 16, "b" * 16, "c" * 16
ERRORS = {
    REFUSED: ("mail.send", "ConnectionRefusedError: mail.example:25", "shop/mail.py:41 deliver"),
    MISSING: ("report.generate", "KeyError: 'tenant'", "shop/reports.py:88 render"),
    SLOW: ("image.resize", "TimeoutError: 30 s", "shop/images.py:17 fetch"),
}
#: Scrolls to where a part of a page begins.
DOWN_TO = """
Array.from(document.querySelectorAll("h2"))
    .find((one) => one.textContent.trim() === arguments[0]).scrollIntoView();
"""
_MINUTE = timedelta(minutes=1)


@pytest.fixture
def busy_site(site):
    """A shop's queues: mail on hold, images without a worker, dead letters in three groups."""
    for queue, kind, count in (("mail", "mail.send", 40), ("images", "image.resize", 12)):
        enqueue_many([(kind, {}, {"queue": queue})] * count)
    Job.objects.update(available_at=UtcNow() - 9 * _MINUTE)
    enqueue_many([("report.generate", {}, {"queue": "reports", "delay": 3600})] * 7)
    for number, (fingerprint, count) in enumerate(((REFUSED, 34), (MISSING, 5), (SLOW, 2))):
        die(fingerprint, count, ("mail", "reports", "images")[number])
    work("mail", "mail.send", 160)
    work("reports", "report.generate", 60)
    pause("mail", by="ann", reason="the mail server is down")
    DeadGroup.objects.create(fingerprint=MISSING, note="Fixed in 2.4: requeue after the deploy.")
    attend()
    site.driver.set_window_size(*SIZE)
    yield site
    site.driver.set_window_size(1200, 900)


def die(fingerprint: str, count: int, queue: str) -> None:
    """Let so many jobs die in the course of the day."""
    kind, error, frame = ERRORS[fingerprint]
    now = timezone.now()
    columns = {"queue_name": queue, "fingerprint": fingerprint, "last_error": error, "claims": 1}
    payload = {"order": 4711, "to": "customer@shop.example"}
    for job_id in bury(count, kind, payload=payload, **columns):
        died = now - timedelta(minutes=13) * (job_id % 17)
        Job.objects.filter(pk=job_id).update(finished_at=died)
        JobAttempt.objects.create(
            job_id=job_id,
            number=1,
            token=b"d" * 16,
            worker="shop-1:web-1:310:7c",
            started_at=died - timedelta(seconds=2),
            finished_at=died,
            outcome="failed",
            error_class=error.partition(":")[0],
            error_text=error,
            frames=["shop/jobs.py:12 run", frame],
        )


def work(queue: str, kind: str, count: int) -> None:
    """Let so many jobs be done in the course of the hour."""
    now = timezone.now()
    jobs = bury(count, kind, status="done", queue_name=queue, claims=1)
    for job_id in jobs:
        ended = now - timedelta(seconds=40) * (job_id * 7 % 80)
        Job.objects.filter(pk=job_id).update(finished_at=ended)
        JobAttempt.objects.create(
            job_id=job_id, number=1, token=b"e" * 16, outcome="completed", finished_at=ended
        )


def attend() -> None:
    """Let two workers be there, and one be gone."""
    began = timezone.now() - timedelta(seconds=47)
    running = [
        {"id": 9000 + n, "type": "report.generate", "since": began.isoformat()} for n in range(2)
    ]
    for name, held, seen in (("shop-1", running, 1), ("shop-2", [], 2), ("shop-3", [], 240)):
        Worker.objects.create(
            name=f"{name}:web-{name[-1]}:310:7c",
            host=f"web-{name[-1]}",
            pid=310,
            version="0.1.0",
            queues=["mail", "reports"],
            children=4,
            current_jobs=held,
            started_at=UtcNow() - timedelta(hours=30),
            seen_at=UtcNow() - timedelta(seconds=seen),
        )


def test_the_dashboard(busy_site):
    busy_site.open("")
    busy_site.reads("41 jobs are dead: look at them.")
    busy_site.reads("1 queue is paused.")
    busy_site.reads("Jobs are due in the queue images, and no worker that is there takes them.")
    busy_site.picture("dashboard")
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    busy_site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        busy_site.picture("dashboard-dark")
    finally:
        busy_site.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_dead_letters_down_to_one(busy_site):
    busy_site.open("deadgroup/")
    busy_site.reads("41 dead letters")
    rows = busy_site.all("#content-main tbody tr")
    assert [row.find_element("css selector", "td").text for row in rows] == ["34", "5", "2"]
    busy_site.picture("dead-letters")
    busy_site.follow("mail.send")
    busy_site.reads("shop/mail.py:41 deliver")
    busy_site.picture("dead-group")
    busy_site.one("#selection tbody a").click()
    busy_site.reads("customer@shop.example")
    busy_site.script(DOWN_TO, "Outcome")
    busy_site.picture("job")


def test_queues_and_workers(busy_site):
    busy_site.open("queue/")
    texts = [row.text for row in busy_site.all(".leasequeue-table tbody tr")]
    assert [text.split()[0] for text in texts] == ["images", "mail", "reports"]
    assert "no worker takes it" in texts[0] and "the mail server is down" in texts[1]
    busy_site.picture("queues")
    busy_site.open("worker/")
    rows = busy_site.all(".leasequeue-table tbody tr")
    numbers = [row.find_element("css selector", "td.leasequeue-number").text for row in rows]
    assert numbers == ["4"] * 3
    assert re.search(r"report\.generate #9000 for \d+ ", rows[0].text)
    assert "not seen" in rows[2].text
    busy_site.picture("workers")
