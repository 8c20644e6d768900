"""A real worker among hostile rows: each line on stderr is one JSON object, whoever splits it."""

from __future__ import annotations

import json

from django_leasequeue import enqueue
from django_leasequeue.models import Job
from tests.security.hostile import TEXTS


def test_every_line_is_one_line(queue_db, worker_process):
    for text in TEXTS.values():
        enqueue(text, {"text": text}, queue=text[:64], key=text)
        enqueue("proc.fail", {"secret": text}, queue=text[:64], max_attempts=1)
    worker = worker_process("--drain", "--name", "\u0430\u0301 \u65e5\u672c")
    assert worker.wait() == 0
    assert worker.lines == []
    assert len(worker.named("job_claimed")) == 2 * len(TEXTS)
    # No handler has such a name.
    assert {event["job_type"] for event in worker.named("job_rejected")} == set(TEXTS.values())
    queues = {text[:64] for text in TEXTS.values()}
    assert {event["queue"] for event in worker.named("job_failed")} == queues
    raw = "".join(json.dumps(event, ensure_ascii=False) for event in worker.events)
    assert "\\n" in raw  # as an escape
    assert not Job.objects.filter(status__in=["ready", "reserved"]).exists()
