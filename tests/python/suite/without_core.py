"""The differences of a copy of the package without its native module: tests that fail there, with the reason.

`scripts/pure_tests.py` runs the suites. A row is the name of a test function, or with its parameters of one test.
A test with a reason of `DIFFERENT` has to fail, so that no row stays after its difference is gone. The tests
of `NOT_RUN` would wait until their deadline.
"""

import pytest

_DURABILITY = "a durability other than memory is refused"
_QUEUE_SURVIVES = "records that wait for a service are lost with the process"
_PROMISE = "an option that needs the core is refused before another fault of it"
_TLS_TEXTS = "the errors of TLS have the texts of Python's ssl"

DIFFERENT = {
    "test_a_forked_child_has_its_own_stream[process]": _DURABILITY,
    "test_a_forked_child_has_its_own_stream[interval]": _DURABILITY,
    "test_a_forked_child_has_its_own_stream[checkpoint]": _DURABILITY,
    "test_a_forked_child_has_its_own_stream[sync]": _DURABILITY,
    **{
        f"test_a_program_ends_in_time_if_the_service_is_silent_and_reports_unsent_records[{way}]": _QUEUE_SURVIVES
        for way in (
            "alone-process",
            "installed-process",
            "installed-interval",
            "installed-checkpoint",
            "installed-sync",
        )
    },
    "test_a_program_ends_in_time_if_the_handshake_gets_no_answer": _QUEUE_SURVIVES,
    "test_recover_sends_leftover_records_and_keeps_them_while_the_service_is_down": _QUEUE_SURVIVES,
    "test_a_keeper_sends_the_records_of_a_killed_program": _DURABILITY,
    "test_a_folder_in_a_file_is_relative_to_the_file": _PROMISE,
    "test_every_option_is_set_by_its_variable": _PROMISE,
    "test_every_option_is_set_by_the_file": _PROMISE,
    "test_check_lists_all_errors_at_once": _PROMISE,
    "test_contradicting_options_in_a_file_are_an_error": _PROMISE,
    "test_an_argument_that_contradicts_a_variable_names_the_variable": _PROMISE,
    "test_the_output_of_show_is_a_file_with_the_same_values": "the default of durability is refused if it is given",
    "test_recover_and_doctor_use_the_queue_folder_of_the_file": "doctor does not look into a queue folder",
    "test_an_invalid_argument_is_an_error_that_names_it_and_a_fix": _PROMISE,
}

NOT_RUN = {
    "test_the_next_start_sends_the_records_of_a_killed_program": _QUEUE_SURVIVES,
    "test_records_of_a_killed_program_are_sent_with_its_certificates": _QUEUE_SURVIVES,
    "test_tls_errors_are_reported_and_the_records_are_sent_once_they_are_fixed": _TLS_TEXTS,
    "test_a_tls_service_at_a_plain_address_is_reported_and_the_records_are_kept": _TLS_TEXTS,
    "test_missing_system_authorities_are_reported_and_existing_ones_are_used": _TLS_TEXTS,
}


def mark(item: pytest.Item) -> None:
    """Mark a test that does not hold without the native module."""
    names = (item.name, item.name.partition("[")[0])
    for name in names:
        if name in NOT_RUN:
            item.add_marker(pytest.mark.skip(reason=f"without the native module: {NOT_RUN[name]}"))
        elif name in DIFFERENT:
            item.add_marker(pytest.mark.xfail(reason=f"without the native module: {DIFFERENT[name]}", strict=True))
