"""Seed S1's final verification checklist: the tests of each of its twelve points."""

from __future__ import annotations

from importlib import import_module

import pytest

CHECKLIST = {
    "1 Duplicate enqueueing returns one durable job ID": [
        "test_contention.test_twenty_processes_that_enqueue_one_key_get_one_id",
        "test_exercise.test_enqueueing_twice_prints_the_same_id",
        "test_exercise.test_the_statement_of_the_reference_producer_meets_the_same_job",
    ],
    "2 Concurrent workers claim different eligible rows without long waits": [
        "test_contention.test_workers_that_run_side_by_side_hold_different_jobs",
        "test_exercise.test_workers_claim_different_rows_of_several_tenants",
        "test_bounds.test_a_held_row_holds_nobody_up",
    ],
    "3 Reservation commits before business processing begins": [
        "test_contention.test_a_reservation_is_committed_and_holds_no_lock_while_the_handler_runs",
    ],
    "4 Connection, network-read and lock-wait bounds are below the lease": [
        "test_bounds.test_the_sessions_bounds_are_below_the_lease",
        "test_bounds.test_a_server_that_falls_silent_is_noticed_within_the_lease",
    ],
    "5 A signal during claim() releases only the matching token and starts no handler": [
        "test_exercise.test_sigterm_right_after_the_claim_releases_the_job",
        "test_exercise.test_a_shutdown_releases_nothing_but_its_own_token",
    ],
    "6 Expired leases return to ready while attempts remain": [
        "test_exercise_failures.test_a_killed_worker_costs_one_lease",
    ],
    "7 Exhausted and permanent failures enter dead": [
        "test_exercise_failures.test_an_unsupported_type_is_dead_after_one_attempt",
        "test_poison.test_an_exhausted_job_is_dead",
        "test_poison.test_a_job_that_kills_its_workers_is_dead_after_its_crashes",
    ],
    "8 An expired or stale token cannot finalize or reschedule a job": [
        "test_stale.test_a_stale_worker_changes_nothing_and_works_on",
        "test_stale.test_a_claim_that_went_stale_starts_no_handler",
    ],
    "9 The business-effect table rejects duplicate idempotency keys": [
        "test_contention.test_a_report_that_exists_is_not_made_twice",
    ],
    "10 Retry delays and maximum attempts are finite": [
        "test_exercise_failures.test_a_transient_failure_is_done_on_attempt_three",
        "test_poison.test_an_exhausted_job_is_dead",
    ],
    "11 Logs expose latency, retries, recovery, lease loss, release and shutdown": [
        "test_log.test_the_log_shows_latency_retries_recovery_loss_release_and_shutdown",
        "test_log.test_payload_values_reach_neither_the_log_nor_the_errors",
    ],
    "12 The runtime identity has no unnecessary privileges": [
        "test_account.test_a_whole_life_needs_no_more",
        "test_account.test_the_account_may_do_nothing_else",
    ],
}


@pytest.mark.parametrize("point", CHECKLIST)
def test_the_point_has_its_tests(point):
    for name in CHECKLIST[point]:
        module, function = name.split(".")
        assert callable(getattr(import_module(f"tests.process.{module}"), function)), name


def test_there_are_twelve_points():
    assert [int(point.split()[0]) for point in CHECKLIST] == list(range(1, 13))
