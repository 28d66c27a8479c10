"""Every fault planted in the stand-in turns the comparison red, and nothing else does."""

import sys

import pytest

from differential import pairs
from differential.scenarios import all_scenarios

SCENARIOS = all_scenarios()

# Rows of the invalidation table that stay green with a plan that is never renewed. Either the change has no effect in
# stock logging, so it must have no effect here. Or it replaces the public method itself, and no plan can miss that.
WITHOUT_EFFECT_ON_A_STALE_PLAN = {
    "parent_disabled_assigned",
    "root_disabled_assigned",
    "root_propagate_assigned",
    "parent_filter_function",
    "parent_filter_object",
    "parent_filter_by_name",
    "parent_filters_assigned",
    "parent_filters_slice_assigned",
    "parent_filters_plus_equals",
    "parent_filter_that_changes_the_record",
    "parents_call_handlers_patched",
    "handler_streams_write_patched",
    "handler_stream_reconfigured",
    "handler_streams_newline_reconfigured",
    "handler_streams_errors_reconfigured",
    "handler_streams_flush_patched",
    "handler_streams_buffers_write_patched",
    "handler_name_assigned",
    "formatters_fmt_alone_assigned",
    "logs_hasHandlers_patched",
    "logger_classs_hasHandlers_patched",
    "logs_info_patched",
    "logs_debug_patched",
    "logs_log_patched",
    "logs_error_patched",
    "logger_classs_info_patched",
    "logger_classs_debug_patched",
    "logger_classs_log_patched",
    "logger_classs_error_patched",
    "record_class_replaced_in_the_module",
    "module_raiseExceptions_assigned",
}

if sys.version_info >= (3, 13):
    # Since 3.13 Handler.handle takes the lock without `acquire` and `release`.
    WITHOUT_EFFECT_ON_A_STALE_PLAN |= {
        f"{owner}_{method}_patched"
        for owner in ("handlers", "handler_classs", "base_handlers")
        for method in ("acquire", "release")
    }
else:
    WITHOUT_EFFECT_ON_A_STALE_PLAN |= {"handler_lock_none"}


def _red(plant, ids):
    """Return the complaint of each scenario that turns red with this plant."""
    wanted = [SCENARIOS[each] for each in ids]
    played = pairs.Pairs(wanted, package=f"stand-in:{plant}")
    found = {}
    for each in wanted:
        stock, installed = played.of(each)
        complaint = pairs.complaint(stock, installed) or "\n".join(installed.complaints)
        if complaint:
            found[each.id] = complaint
    return found


def test_a_plan_that_is_never_renewed_fails_every_affected_row():
    ids = [each for each in SCENARIOS if each.startswith("invalidation.file.")]

    red = _red("stale", ids)

    green = {each.rpartition(".")[2] for each in ids if each not in red}
    assert green == WITHOUT_EFFECT_ON_A_STALE_PLAN


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        ("drops", "behaviours.caller_made_by_exec_many_times"),
        ("drops", "console.terminal.many_lines_and_a_long_one"),
        ("doubles", "concurrency.threads_on_one_handler"),
        ("swaps", "behaviours.caller_made_by_exec_many_times"),
        ("late", "visibility.flush_is_exact"),
        ("late", "visibility.direct_emit_and_handle_are_in_order_and_exact_after_a_flush"),
        ("wrong-line", "behaviours.line_and_function_of_the_caller"),
        ("short-report", "reports.callers_stack_stands_in_the_report"),
        ("rounded", "behaviours.percent_arguments"),
        ("cached-zone", "clock.time_zone_changed_by_tzset"),
        ("raises", "behaviours_beyond.bad_arguments_never_raise_in_the_caller"),
        ("dies", "behaviours.caller_made_by_exec_many_times"),
    ],
)
def test_a_planted_fault_fails_its_scenario(plant, name):
    assert name in _red(plant, [name])


def test_a_scenario_that_ends_the_process_does_not_affect_the_next():
    ids = ["behaviours.percent_arguments", "behaviours.caller_made_by_exec_many_times", "behaviours.stacklevel"]

    red = _red("dies", ids)

    assert list(red) == ["behaviours.caller_made_by_exec_many_times"]


def test_rows_that_expect_stock_fail_if_all_calls_are_native():
    expected_native = "invalidation.file.log_set_level"
    expected_stock = "invalidation.file.handler_filter_function"

    red = _red("counts-native", [expected_native, expected_stock])

    assert list(red) == [expected_stock]
    assert "expected stock, 6 calls were native" in red[expected_stock]


def test_rows_that_expect_native_fail_if_all_calls_are_stock():
    expected_native = "invalidation.file.log_set_level"
    expected_stock = "behaviours.formatter_subclasses"

    red = _red("counts-stock", [expected_native, expected_stock])

    assert list(red) == [expected_native]
    assert "expected native, 0 calls were native and 1010 stock" in red[expected_native]
