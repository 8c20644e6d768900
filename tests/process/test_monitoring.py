"""A worker's port, its heartbeat file and its handlers' log lines, from its start to its end."""

from __future__ import annotations

import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from django_leasequeue import enqueue
from django_leasequeue.runtime.heartbeat import read_heartbeat
from tests.faults.tree import tree_of
from tests.process.processes import listening_ports
from tests.process.test_profiles import SETTINGS
from tests.waiting import wait_until

pytest.importorskip("prometheus_client")


def fetch(worker, path):
    port = worker.wait_event("metrics_listening")["port"]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def ready(worker):
    return fetch(worker, "/readyz") == (200, "ok\n")


def sample(worker, name):
    _status, text = fetch(worker, "/metrics")
    values = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(name)]
    return float(values[0]) if values else None


@pytest.mark.parametrize("mode", [("--threads", "2"), ("--solo",)], ids=["children", "solo"])
def test_a_scrape_while_it_works_and_probes_until_it_ends(
    queue_db, worker_process, gate, tmp_path, mode
):
    heartbeat = tmp_path / "heartbeat"
    first = enqueue("proc.note").id
    worker = worker_process("--metrics-port", "0", "--heartbeat-file", str(heartbeat), *mode)
    worker.wait_event("job_completed", job_id=first)
    wait_until(lambda: ready(worker))
    assert fetch(worker, "/livez") == (200, "ok\n")
    held = enqueue("proc.wait", {"gate": str(gate("a"))}).id
    gate("a").wait("started")
    port = worker.wait_event("metrics_listening")["port"]
    assert listening_ports(one.pid for one in tree_of(worker.pid)) == {port}
    labels = '{job_type="proc.note",outcome="completed",worker="worker"}'
    assert sample(worker, f"leasequeue_attempts_total{labels}") == 1
    assert sample(worker, 'leasequeue_worker_held_jobs{worker="worker"}') == 1
    assert sample(worker, 'leasequeue_database_up{database="default"}') == 1
    wait_until(lambda: not read_heartbeat(str(heartbeat), ready=True))
    silent = socket.create_connection(("127.0.0.1", port))
    worker.signal(signal.SIGTERM)
    wait_until(lambda: fetch(worker, "/readyz") == (503, "stopping\n"))
    assert fetch(worker, "/livez")[0] == 200
    assert not read_heartbeat(str(heartbeat))
    gate("a").say("go")
    worker.wait_event("job_completed", job_id=held)
    assert worker.wait() == 0
    assert worker.lines == []
    assert not heartbeat.exists()
    silent.close()


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_an_outage_is_seen_at_once(queue_db, worker_process, proxy, by_proxy):
    worker = worker_process("--metrics-port", "0", env=by_proxy)
    wait_until(lambda: ready(worker))
    assert sample(worker, 'leasequeue_database_up{database="default"}') == 1
    proxy.cut()
    worker.wait_event("database_lost")
    assert fetch(worker, "/readyz") == (503, "the database cannot be reached\n")
    assert fetch(worker, "/livez")[0] == 200
    wait_until(lambda: sample(worker, 'leasequeue_database_up{database="default"}') == 0)
    assert sample(worker, "leasequeue_database_outages_total") == 1
    proxy.mend()
    worker.wait_event("database_back")
    wait_until(lambda: ready(worker))
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


def test_several_profiles_are_told_apart(queue_db, worker_process, tmp_path, process_environment):
    Path(tmp_path / "monitored_settings.py").write_text(SETTINGS)
    paths = f"{tmp_path}:{process_environment['PYTHONPATH']}"
    env = {"PYTHONPATH": paths, "DJANGO_SETTINGS_MODULE": "monitored_settings"}
    job_id = enqueue("proc.note", queue="mail").id
    options = ("--profile", "mail", "--profile", "reports", "--metrics-port", "0")
    worker = worker_process(*options, env=env)
    worker.wait_event("job_completed", job_id=job_id)
    wait_until(lambda: ready(worker))
    assert sample(worker, 'leasequeue_claims_total{job_type="proc.note",worker="mail"}') == 1
    assert sample(worker, 'leasequeue_worker_ready{worker="reporter"}') == 1
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("mode", [("--threads", "2"), ("--solo",)], ids=["threads", "solo"])
def test_what_a_handler_logs_names_its_job(queue_db, worker_process, mode):
    plain = enqueue("proc.say").id
    dying = enqueue("proc.say", {"end": "no"}).id
    later = enqueue("proc.say_later").id
    worker = worker_process("--drain", *mode)
    assert worker.wait() == 0
    assert worker.lines == []
    said = {(one["message"], one["job_id"], one["attempt"]) for one in worker.named("log")}
    assert {one["job_type"] for one in worker.named("log")} == {"proc.say", "proc.say_later"}
    assert said == {
        ("in the handler", plain, 1),
        ("in the handler", dying, 1),
        ("in the hook", dying, 1),
        ("in a coroutine", later, 1),
        ("in its thread", later, 1),
    }
