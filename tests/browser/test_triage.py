"""Triage by mouse and keys: groups to empty, a double click, a payload, the keyboard alone."""

from __future__ import annotations

from collections import Counter

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from django_leasequeue.core.bulk import start
from django_leasequeue.core.bulk_filter import JobFilter
from django_leasequeue.core.bulk_plan import Options
from django_leasequeue.core.clock import UtcNow
from django_leasequeue.models import BulkRun, Job
from tests.core.bulk import bury

A, B, C = "a" * 16, "b" * 16, "c" * 16


def dead() -> Counter[str]:
    return Counter(Job.objects.filter(status="dead").values_list("fingerprint", flat=True))


def confirm(site, reason: str) -> None:
    site.fill("#id_reason", reason)
    site.one("#confirm").click()


def test_three_groups_of_300_to_empty(site, worker_process):
    bury(100, "proc.note", fingerprint=A, last_error="ConnectionRefusedError: mail.example")
    bury(100, "report.generate", fingerprint=B, last_error="KeyError: 'tenant'")
    bury(100, "proc.note", fingerprint=C, last_error="TimeoutError: 30 s")
    site.open("")
    site.reads("300")
    site.open("deadgroup/")
    site.reads("300 dead letters")

    site.one("#content-main tbody th a").click()
    site.one("#requeue-all").click()
    site.picture("confirm")
    confirm(site, "the mail server is back")
    site.wait(lambda: site.one("#run-changed").text == "100", "the run's end")
    assert len(dead()) == 2

    site.open("deadgroup/?type=report.generate")
    site.one("#cancel-all").click()
    confirm(site, "those reports are not wanted any more")
    site.wait(lambda: site.one("#run-changed").text == "100", "the run's end")
    assert sum(dead().values()) == 100

    site.open("deadgroup/")
    site.one("#content-main tbody th a").click()
    site.one("#id_selection_reason")
    for box in site.all("input[name=job]"):
        box.click()
    site.fill("#id_selection_reason", "looked at, one by one")
    site.one("#requeue-selected").click()
    site.wait(lambda: site.one("#run-changed").text == "100", "the run's end")
    site.open("deadgroup/")
    site.reads("There are no dead letters here.")
    assert worker_process("--drain").wait() == 0
    done, cancelled = (Job.objects.filter(status=word).count() for word in ("done", "cancelled"))
    assert (done, cancelled) == (200, 100)


def test_a_double_click_and_the_way_back_requeue_once(site):
    bury(30, "proc.note", fingerprint=A)
    site.open("deadgroup/")
    site.one("#requeue-all").click()
    page = site.driver.current_url
    site.fill("#id_reason", "twice")
    ActionChains(site.driver).double_click(site.one("#confirm")).perform()
    site.wait(lambda: site.one("#run-changed").text == "30", "the run's end")
    site.driver.back()
    site.wait(lambda: site.driver.current_url == page, "the page before")
    if site.one("#nothing-dead, #confirm").get_attribute("id") == "confirm":  # kept by the browser
        confirm(site, "and again")
        site.one("#run-changed")
    assert BulkRun.objects.count() == 1
    assert Counter(Job.objects.values_list("status", flat=True)) == {"ready": 30}


def test_what_two_tabs_show_is_requeued_once(site):
    """Even when the jobs have run, and died, before the second tab sends what it shows."""
    ids = bury(3, "proc.note", fingerprint=A, claims=1)
    site.open("deadgroup/requeue/confirm/")
    site.fill("#id_reason", "the first tab")
    first = site.driver.current_window_handle
    site.driver.switch_to.new_window("tab")
    site.open(f"job/{ids[0]}/change/")
    site.fill("#id_act_reason", "the job's own page")
    second = site.driver.current_window_handle
    site.driver.switch_to.new_window("tab")
    site.open("deadgroup/requeue/confirm/")
    confirm(site, "the third tab")
    site.wait(lambda: site.one("#run-changed").text == "3", "the run's end")
    again = {"status": "dead", "claims": 2, "finished_at": UtcNow()}
    assert Job.objects.filter(status="ready").update(**again) == 3
    site.driver.close()
    site.driver.switch_to.window(second)
    site.one("#requeue-job").click()
    site.reads("it has changed since the page was shown")
    site.driver.close()
    site.driver.switch_to.window(first)
    site.one("#confirm").click()
    site.reads("Nothing was started: root had confirmed the same")
    assert BulkRun.objects.get().changed == 3
    assert sum(dead().values()) == 3


def test_the_lists_action_asks_why_and_its_page_carries_it_on(site):
    bury(30, "proc.note", fingerprint=A)
    site.open("job/?status=dead")
    site.one("#action-toggle").click()
    site.one("select[name=action] option[value=requeue_jobs]").click()
    site.one(".actions button[name=index]").click()
    site.reads("30 jobs would be ready again")
    site.picture("action")
    confirm(site, "the mail server is back")
    site.wait(lambda: site.one("#run-changed").text == "30", "the run's end")
    site.reads("Started: the mail server is back")
    assert sum(dead().values()) == 0


def test_a_run_that_is_only_looked_at_stays_as_it_is(site):
    ids = bury(3, "proc.note", fingerprint=A)
    run = start("requeue", JobFilter(ids=ids), Options(), by="somebody at a command line")
    site.open(f"bulkrun/{run.pk}/change/")
    site.one("#id_go_reason")
    assert not site.all("#bulk-go[data-carries]")
    site.driver.refresh()
    site.fill("#id_go_reason", "they are away")
    assert sum(dead().values()) == 3
    site.one("#bulk-go input[type=submit]").click()
    site.wait(lambda: site.one("#run-changed").text == "3", "the run's end")


def test_a_payload_is_mended_and_requeued(site):
    (job_id,) = bury(1, "proc.note", payload={"text": "wrong"})
    site.open(f"job/{job_id}/change/")
    site.one("#edit-payload").click()
    site.fill("#id_reason", "a typing error")
    site.fill("textarea[name=payload]", '{"text": ')
    site.one("#preview").click()
    site.one(".errorlist")
    site.fill("textarea[name=payload]", '{"text": "right"}')
    site.one("#preview").click()
    assert "right" in site.one("#payload-diff .diff-add").text
    assert "wrong" in site.one("#payload-diff .diff-del").text
    site.picture("payload")
    site.one("#confirm").click()
    site.wait(lambda: Job.objects.get().status == "ready", "requeued")
    assert Job.objects.get().payload == {"text": "right"}


def test_by_keyboard_alone(site):
    bury(3, "proc.note", fingerprint=A)
    site.open("deadgroup/")
    tab_to(site, "#requeue-all").send_keys(Keys.ENTER)
    site.one("#confirm")
    tab_to(site, "#id_reason").send_keys("by keys")
    tab_to(site, "#confirm").send_keys(Keys.ENTER)
    site.wait(lambda: site.one("#run-changed").text == "3", "the run's end")
    assert set(Job.objects.values_list("status", flat=True)) == {"ready"}


#: Whether the element looks otherwise with the focus than without; that it has it is no answer.
SEEN = """
const one = arguments[0];
const names = ["outlineStyle", "outlineWidth", "boxShadow", "borderTopColor", "backgroundColor",
               "color", "textDecorationLine"];
one.getAnimations().forEach((change) => change.finish());
const look = () => names.map((name) => getComputedStyle(one)[name]).join();
one.style.transition = "none";
const focused = look();
one.blur();
const blurred = look();
one.focus({ focusVisible: true });
return focused !== blurred;
"""


def tab_to(site, selector: str):
    """Press Tab until the element has the focus, which has to be seen; return it."""
    for _ in range(80):
        ActionChains(site.driver).send_keys(Keys.TAB).perform()
        focused = site.driver.switch_to.active_element
        if focused == site.one(selector):
            assert site.script(SEEN, focused), f"nothing shows that {selector} has the focus"
            return focused
    pytest.fail(f"no way to {selector} by Tab")
