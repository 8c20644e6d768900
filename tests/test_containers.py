"""The shipped Dockerfile, compose file and manifests: they fit the settings and the commands."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class

from django_leasequeue.conf import Conf
from tests.markdown import DOCS
from tests.test_deployment import least_stop_seconds

FOLDER = DOCS / "deployment"
KUBERNETES = FOLDER / "kubernetes"


def manifests(name: str) -> dict[str, Any]:
    """Return a file's manifests by their kind."""
    text = (KUBERNETES / name).read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return found


# Every command line


def command_lines() -> dict[str, list[str]]:
    """Return what follows "manage.py" wherever a file starts or names one of our commands."""
    found = {}
    for path in sorted(path for path in FOLDER.rglob("*") if path.is_file()):
        text = re.sub(r"^ *#.*$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for line in re.findall(r"\bmanage\.py\b(.*)", text):
            words = shlex.split(re.sub(r"[\[\],;\"]", " ", line.partition(";")[0]))
            if words and words[0] in ("runworker", "leasequeue"):
                found[f"{path.name}: {' '.join(words)}"] = words
    return found


@pytest.mark.parametrize("words", command_lines().values(), ids=list(command_lines()))
def test_a_command_line_is_one(words):
    parser = load_command_class("django_leasequeue", words[0]).create_parser("manage.py", words[0])
    parser.parse_args(words[1:])


def test_every_kind_of_process_is_there():
    lines = set(command_lines())
    for name in ("Dockerfile", "compose.yaml", "worker.yaml", "leasequeue-worker.service"):
        assert any(line.startswith(f"{name}: runworker") for line in lines), name
    for name in ("compose.yaml", "prune.yaml", "leasequeue-prune.service"):
        assert f"{name}: leasequeue prune --pause 0.05" in lines


def test_the_health_check_asks_for_the_heartbeat_that_the_worker_writes():
    worker = compose()["services"]["worker"]
    option = worker["command"][-2:]
    assert option[0] == "--heartbeat-file"
    assert worker["healthcheck"]["test"][-2:] == option
    assert Path(option[1]).parent == Path("/tmp")
    assert compose()["x-shop"]["tmpfs"] == ["/tmp"]


# Dockerfile


def instructions() -> list[tuple[str, str]]:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, rest)
        for word, _, rest in (line.partition(" ") for line in text.splitlines())
        if word
    ]


def test_the_image_runs_without_compilers_and_without_root():
    words = instructions()
    starts = [number for number, (word, _) in enumerate(words) if word == "FROM"]
    assert len(starts) == 2
    final = words[starts[-1] :]
    assert not any("gcc" in rest for _, rest in final)
    last = {word: number for number, (word, _) in enumerate(final)}
    assert last["USER"] > last["COPY"] > last["RUN"]  # what was copied belongs to root
    assert not re.match(r"0|root", dict(final)["USER"])


def test_the_image_hands_signals_to_the_worker():
    last = dict(instructions())
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert json.loads(last["ENTRYPOINT"]) == ["/usr/bin/tini", "--"]  # -g would signal children
    assert json.loads(last["CMD"]) == ["python", "manage.py", "runworker"]


# Compose


def test_compose_waits_for_a_worker_s_end():
    grace = compose()["services"]["worker"]["stop_grace_period"]
    assert float(grace.removesuffix("s")) > least_stop_seconds(Conf())


def test_compose_gives_each_process_an_account_of_its_own():
    services = compose()["services"]
    urls = [
        services[name]["environment"]["DATABASE_URL"]
        for name in ("migrate", "web", "worker", "prune")
    ]
    assert len(set(urls)) == len(urls)
    assert all(url.endswith(":?set it}") for url in urls)


def test_compose_starts_after_the_tables_are_there():
    services = compose()["services"]
    assert services["migrate"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for name in ("web", "worker", "prune"):
        (condition,) = services[name]["depends_on"].values()
        assert condition == {"condition": "service_completed_successfully"}, name
        assert services[name]["restart"] == "always"


# Kubernetes


def pods() -> dict[str, Any]:
    """Return the pods that the manifests make."""
    prune = manifests("prune.yaml")["CronJob"]["spec"]["jobTemplate"]
    worker = manifests("worker.yaml")["Deployment"]
    return {
        "worker": worker["spec"]["template"]["spec"],
        "prune": prune["spec"]["template"]["spec"],
    }


def test_kubernetes_waits_for_a_worker_s_end():
    pod = pods()["worker"]
    (container,) = pod["containers"]
    program, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    # The clock of the grace period runs from before preStop.
    least = float(seconds) + least_stop_seconds(Conf())
    assert pod["terminationGracePeriodSeconds"] > least


def test_the_probes_ask_the_port_of_the_command_line():
    (container,) = pods()["worker"]["containers"]
    (port,) = container["ports"]
    words = container["args"]
    assert words[words.index("--metrics-port") + 1] == str(port["containerPort"])
    paths = {
        probe: container[f"{probe}Probe"]["httpGet"]["path"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    assert {container[f"{probe}Probe"]["httpGet"]["port"] for probe in paths} == {port["name"]}


def test_the_last_worker_is_never_taken():
    found = manifests("worker.yaml")
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    budget = found["PodDisruptionBudget"]["spec"]
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert found["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert 0 < budget["minAvailable"] < found["Deployment"]["spec"]["replicas"]


@pytest.mark.parametrize("name", ["worker", "prune"])
def test_a_pod_has_no_more_rights_than_the_image(name):
    pod = pods()[name]
    user = dict(instructions())["USER"]
    context = pod["securityContext"]
    assert context["runAsNonRoot"]
    assert f"{context['runAsUser']}:{context['runAsGroup']}" == user
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_no_two_prunes_at_a_time():
    assert manifests("prune.yaml")["CronJob"]["spec"]["concurrencyPolicy"] == "Forbid"


def test_kustomize_lists_every_manifest():
    text = (KUBERNETES / "kustomization.yaml").read_text(encoding="utf-8")
    files = {Path(path).name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(yaml.safe_load(text)["resources"]) == files
