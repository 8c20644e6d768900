"""Monitoring of the workers of one process: their meters, their port and their heartbeat file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_leasequeue.events import log_event
from django_leasequeue.metrics.exposition import (
    WorkerState,
    expose,
    require_client,
    worker_families,
)
from django_leasequeue.metrics.gauges import GaugeReader, gauge_families
from django_leasequeue.metrics.meter import PrometheusMeter, Tallies
from django_leasequeue.port import Answer, Port
from django_leasequeue.runtime.heartbeat import Heartbeat
from django_leasequeue.runtime.meter import Meter
from django_leasequeue.runtime.pulse import Pulse, not_live, not_ready
from django_leasequeue.runtime.worker import Worker

__all__ = ["Monitoring"]


class Monitoring(AbstractContextManager["Monitoring"]):
    """What the command's options ask for; open while the workers run.

    Make it, make each worker with `meter_for`, give them to `watch`, and start it before any runs;
    the end of its block stops it.
    """

    def __init__(self, options: Mapping[str, Any], lines_dropped: Callable[[], int]) -> None:
        """Raise ImproperlyConfigured for options that cannot be had; nothing is started yet."""
        self._port_number: int | None = options.get("metrics_port")
        self._host: str = options.get("metrics_host") or "127.0.0.1"
        path = options.get("heartbeat_file")
        self._heartbeat = Heartbeat(path, self._pulses) if path else None
        self._lines_dropped = lines_dropped
        self._tallies = Tallies()
        self._workers: dict[str, Worker] = {}
        self._readers: list[GaugeReader] = []
        self._stack = ExitStack()
        if self._port_number is not None:
            if not 0 <= self._port_number <= 65_535:
                raise ImproperlyConfigured("--metrics-port must be 0 to 65535.")
            require_client()

    def meter_for(self, name: str) -> Meter:
        """Return the meter of a worker that is shown under this name."""
        beat = self._heartbeat.beat if self._heartbeat else _do_nothing
        if self._port_number is not None:
            return PrometheusMeter(self._tallies, name, beat)
        return _Beating(beat) if self._heartbeat else Meter()

    def watch(self, workers: Mapping[str, Worker]) -> None:
        """Take the workers, by the names that they are shown under."""
        self._workers = dict(workers)

    def start(self) -> None:
        """Start what is asked for.

        Raises ImproperlyConfigured for a busy port or a file that cannot be written; the workers
        are closed then.
        """
        try:
            self._start()
        except ImproperlyConfigured:
            for worker in self._workers.values():
                worker.close()
            raise

    def _start(self) -> None:
        with ExitStack() as stack:
            if self._heartbeat is not None:
                self._start_heartbeat(self._heartbeat)
                stack.callback(self._heartbeat.stop)
            if self._port_number is not None:
                self._open_port(stack, self._port_number)
            self._stack = stack.pop_all()

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    @staticmethod
    def _start_heartbeat(heartbeat: Heartbeat) -> None:
        try:
            heartbeat.start()
        except OSError as error:
            raise ImproperlyConfigured(
                f"--heartbeat-file cannot be written: {error.strerror or type(error).__name__}. "
                "Name a file in a directory that the worker's account may write to."
            ) from error

    def _open_port(self, stack: ExitStack, number: int) -> None:
        routes = {"/metrics": self._metrics, "/livez": self._live, "/readyz": self._ready}
        try:
            port = Port(self._host, number, routes)
        except OSError as error:
            raise ImproperlyConfigured(
                f"--metrics-port: cannot listen on {self._host} port {number}: "
                f"{error.strerror or type(error).__name__}. Choose a port that is free, and an "
                "address of this host."
            ) from error
        for alias in dict.fromkeys(worker.database for worker in self._workers.values()):
            reader = GaugeReader(alias)
            reader.start()
            stack.callback(reader.stop)
            self._readers.append(reader)
        stack.enter_context(port)
        log_event("metrics_listening", host=self._host, port=port.number)

    def _pulses(self) -> Sequence[Pulse]:
        return [worker.pulse() for worker in self._workers.values()]

    def _live(self, accept: str) -> Answer:
        return _answer(not_live(self._pulses()))

    def _ready(self, accept: str) -> Answer:
        return _answer(not_ready(self._pulses()))

    def _metrics(self, accept: str) -> Answer:
        body, content_type = expose(self._collect, accept)
        return Answer(HTTPStatus.OK, body, content_type)

    def _collect(self) -> list[Any]:
        states = {
            name: WorkerState(worker.pulse(), len(worker.holds))
            for name, worker in self._workers.items()
        }
        counted = worker_families(self._tallies, states, self._lines_dropped())
        return counted + gauge_families([reader.read() for reader in self._readers])


class _Beating(Meter):
    """Counts nothing, and keeps the heartbeat going."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat

    def turned(self) -> None:
        self._beat()


def _answer(problem: str) -> Answer:
    if problem:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n".encode())
    return Answer(HTTPStatus.OK, b"ok\n")


def _do_nothing() -> None:
    """No heartbeat file is asked for."""
