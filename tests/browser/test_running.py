"""Beside real workers: pause and resume, who works on what, a drain from afar, news by itself."""

from __future__ import annotations

from django.contrib.sessions.models import Session

from django_leasequeue import enqueue
from django_leasequeue.models import Job, Queue
from tests.waiting import wait_until


def test_pause_and_resume(site, worker_process):
    held = enqueue("proc.note", queue="bulletins").id
    site.open("queue/")
    ask(site, "Pause", "the mail server is down")
    site.reads("the mail server is down")
    assert Queue.objects.get().paused_at is not None
    other = enqueue("proc.note").id
    # In this order a worker that knew of no pause would have begun with the held job.
    worker = worker_process("--queues", "bulletins,default")
    worker.wait_event("job_completed", job_id=other)
    assert Job.objects.get(pk=held).status == "ready"
    assert worker.named("job_claimed", job_id=held) == []
    site.open("queue/")
    ask(site, "Resume", "the mail server is back")
    worker.wait_event("job_completed", job_id=held)
    worker.signal(15)
    assert worker.wait() == 0


def test_a_worker_s_job_and_its_drain(site, worker_process, gate):
    job_id = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    worker = worker_process("--processes", "2", "--name", "mail-1")
    gate("a").wait("started")
    site.open("worker/")
    site.reads(f"proc.wait #{job_id}")
    site.reads("mail-1")
    children = site.one(".leasequeue-table tbody td.leasequeue-number")
    assert children.text == "2"
    ask(site, "Drain", "a new version")
    worker.wait_event("drain_requested")
    gate("a").say("go")
    assert worker.wait() == 0
    assert Job.objects.get().status == "done"


def test_the_dashboard_refreshes_itself(site):
    site.open("")
    site.script("window.stayed = true")
    site.reads("As of")
    enqueue("proc.note", queue="newcomers")
    site.reads("newcomers")
    assert site.script("return window.stayed") is True


def test_a_page_says_when_it_is_old(site):
    """Case of an operator who leaves the page open: the session ends meanwhile."""
    site.open("queue/")
    site.reads("As of")
    trouble = site.one("[data-leasequeue-trouble]")
    assert (trouble.text, trouble.get_attribute("aria-live")) == ("", "polite")
    Session.objects.all().delete()
    site.reads("What is shown is old: the server refused to refresh it.")
    site.reads("As of")


def ask(site, verb: str, reason: str) -> None:
    """Open a row's form, give the reason and send it."""
    site.one(".leasequeue-ask summary").click()
    site.fill(".leasequeue-ask input[name=reason]", reason)
    button = site.one(".leasequeue-ask button")
    assert button.text == verb
    button.click()
    wait_until(lambda: site.all(".messagelist"), timeout=30, message="no answer")
