"""A connection shut from another thread: who waits for the server's answer gets an error."""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing

import pytest
from django.db import DatabaseError

from django_leasequeue.core.dialect import Trouble, trouble
from django_leasequeue.core.sessions import end_statement, session_id, shut, wire_of
from tests.waiting import wait_until

SLEEP = {"mysql": "SELECT SLEEP(60)", "postgresql": "SELECT pg_sleep(60)"}


@pytest.mark.only_on("sqlite")
def test_a_file_has_no_wire(queue_db):
    queue_db.ensure_connection()
    assert wire_of(queue_db) is None


@pytest.mark.only_on("mariadb", "mysql", "postgres")
def test_who_waits_gets_an_error(queue_db, second_connection):
    own = second_connection()
    assert wire_of(own) is None  # not connected
    own.ensure_connection()
    wire, number = wire_of(own), session_id(own)
    errors = []

    def wait():
        try:
            with own.cursor() as cursor:
                cursor.execute(SLEEP[own.vendor])
        except DatabaseError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 0.2)
    with closing(os.fdopen(wire, "rb", closefd=True)):
        shut(wire)
        waiting.join(10)
        shut(wire)  # a second time does no harm
    assert not waiting.is_alive()
    end_statement(queue_db, number)  # the server has not noticed
    assert trouble(own, errors[0]) is Trouble.RECONNECT
