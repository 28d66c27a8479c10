//! The tests of the core through its public interface, in one program: linking one is faster than linking sixty.
//!
//! Each file is a module. `scripts/rust_tests.py` runs each module in a process of its own, because a process has one
//! queue. `cargo test -p logspool --test all -- MODULE::` runs one.

/// The full name of a test of the calling module, for a process that runs only this test.
macro_rules! own_test {
    ($name:expr) => {
        [module_path!().split_once("::").expect("a module of this program").1, "::", $name].concat()
    };
}

mod closed_descriptors;
mod closed_pipe;
mod crash;
mod durable_checkpoint;
mod durable_interval;
mod durable_levels;
mod durable_spooled;
mod durable_sync;
mod durable_unread;
mod end_hung_sync;
mod end_retired;
mod end_stalled;
mod end_taken_back;
mod failing_sink;
mod feeding;
mod file_line;
mod fork_flush;
mod fork_ids;
mod fork_race;
mod fork_unlogged;
mod front;
mod front_close_target;
mod front_endings;
mod front_format;
mod front_forms;
mod front_log;
mod front_log_and_tracing;
mod front_many_targets;
mod front_relative;
mod front_tracing;
mod front_tracing_layers;
mod front_unopened;
mod http_receiver;
mod hung_stderr;
mod idle_writer;
mod large_records;
mod large_records_wait;
mod lent_pipe;
mod line;
mod main_thread_gone;
mod many_files;
mod many_threads;
mod openmetrics_page;
mod orphan;
mod reader_restarts;
mod recover_hostile;
mod recover_hung;
mod recover_kept;
mod recover_killed;
mod recover_own;
mod recover_read_errors;
mod recover_relatives;
mod recover_rules;
mod recover_service;
mod recover_steps;
mod refused_errors;
mod refused_records;
mod retired_sink;
mod rotating_compressed;
mod rotating_failures;
mod rotating_limits;
mod rotating_size;
mod rotating_time;
mod second_copy;
mod service;
mod service_given_up;
mod service_sink;
mod service_tls;
mod several_processes;
mod shared_lanes;
mod shut_door;
mod signalled_waits;
mod sink_contract;
mod sink_definition_bytes;
mod sinks_come_and_go;
mod spooled;
mod spooled_damaged;
mod spooled_full;
mod spooled_killed;
mod spooled_service;
mod stalled_sink;
mod tls_front;
mod watched_moved;
