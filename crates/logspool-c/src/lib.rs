//! `liblogspool`: the functions of `logspool.h` under their names.
//!
//! Each calls through the table of the copy of the library that has the queue of the process; see `logspool-abi`.

use std::ffi::{c_char, c_int, c_long, c_longlong, c_void};

use logspool_abi::handles::{Id, PublicHandle};
use logspool_abi::sites::SiteInfo;
use logspool_abi::table::{Api, FORWARD, LaneView, forward};
use logspool_abi::values::Argument;

/// Exports functions of the table under their C names.
macro_rules! exports {
    ($($export:ident = $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)+) => {$(
        /// See `logspool.h`.
        ///
        /// # Safety
        ///
        /// The arguments are as `logspool.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $export($($argument: $kind),*) $(-> $result)? {
            // SAFETY: the arguments are passed on as they came from the program, which has `logspool.h`.
            unsafe { forward::$name($($argument),*) }
        }
    )+};
}

// Written by scripts/c_interface.py from the table of `logspool-abi`.
exports! {
    logspool_configure = configure(options_json: *const c_char) -> c_int;
    logspool_sink_open = sink_open(address: *const c_char, format_json: *const c_char) -> Id;
    logspool_logger = logger(name: *const c_char, level: u16, sinks: *const Id, count: usize) -> Id;
    logspool_logger_level = logger_level(logger: Id, level: u16) -> c_int;
    logspool_site = site(site: *const SiteInfo) -> Id;
    logspool_emit = emit(logger: Id, site: Id, args: *const Argument, count: usize) -> c_int;
    logspool_text = text(logger: Id, level: u16, text: *const c_char, length: usize, file: *const c_char, line: u32, function: *const c_char) -> c_int;
    logspool_reserve = reserve(logger: Id, site: Id, value_bytes: usize) -> *mut c_void;
    logspool_commit = commit() -> c_int;
    logspool_abandon = abandon() -> c_int;
    logspool_flush = flush(timeout_seconds: f64) -> c_int;
    logspool_drain = drain(timeout_seconds: f64) -> c_int;
    logspool_stats = stats(buffer: *mut c_char, bytes: usize) -> c_long;
    logspool_recover = recover(folder: *const c_char) -> c_longlong;
    logspool_last_error = last_error() -> *const c_char;
    logspool_last_status = last_status() -> c_int;
    logspool_generation = generation() -> u64;
    logspool_lane_view = lane_view() -> *mut LaneView;
    logspool_logger_handle = logger_handle(logger: Id) -> *const PublicHandle;
    logspool_site_handle = site_handle(site: Id) -> *const PublicHandle;
    logspool_wake = wake(level: u16);
    logspool_logger_find = logger_find(name: *const c_char) -> Id;
    logspool_logger_close = logger_close(logger: Id) -> c_int;
    logspool_sink_close = sink_close(sink: Id) -> c_int;
}

/// See `logspool.h`.
#[unsafe(no_mangle)]
pub extern "C" fn logspool_api_table() -> *const Api {
    &FORWARD
}
