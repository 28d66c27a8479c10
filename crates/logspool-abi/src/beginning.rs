//! Installs what runs when the process forks, crashes or ends.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the flags of what is installed.

use std::sync::atomic::{AtomicBool, Ordering};

use logspool::option::{OptionTable, ordered};
use logspool::pipeline::{self, Options};

use crate::json;
use crate::status::{Failure, Status};

static BEGUN: AtomicBool = AtomicBool::new(false);
static CRASH_SIGNALS: AtomicBool = AtomicBool::new(true);
/// Whether the language binding handles forks itself.
static FORKS_ARE_HANDLED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    // `at_quick_exit` is part of the C standard, but the crate `libc` does not declare it.
    fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
}

/// Call it in a binding whose language calls the core at each fork, as CPython does.
pub fn forks_are_handled() {
    FORKS_ARE_HANDLED.store(true, Ordering::Relaxed);
}

/// Sets the options. `None` sets the defaults.
///
/// # Errors
///
/// The text is no object, has an unknown option, or a value out of its range.
pub fn configure(text: Option<&str>) -> Result<Status, Failure> {
    let object = json::object("the options", text.unwrap_or("{}"))?;
    for (name, value) in &object {
        if ["uncaught", "defer_formatting", "keeper"].contains(&name.as_str())
            && *value != serde_json::Value::Bool(false)
        {
            return Err(Failure::invalid(format!("{name} works in Python only")));
        }
    }
    let given = json::option_values(Options::ROWS, object)?;
    let refused = |error: logspool::option::OptionError| Failure::invalid(error.to_string());
    let options = ordered("logspool_configure()", Options::ROWS, given).and_then(|all| Options::from_values(&all));
    let options = options.map_err(refused)?;
    let crash_signals = options.crash_signals;
    pipeline::configure(options).map_err(|error| Failure::invalid(error.to_string()))?;
    CRASH_SIGNALS.store(crash_signals, Ordering::Relaxed);
    if BEGUN.load(Ordering::Relaxed) && !crash_signals {
        pipeline::remove_crash_drain();
    }
    Ok(Status::Ok)
}

/// Installs everything, once in the life of a program image.
#[inline]
pub fn begin() {
    if !BEGUN.load(Ordering::Relaxed) {
        install();
    }
}

#[cold]
fn install() {
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    extern "C" fn at_exit() {
        let _ = std::panic::catch_unwind(|| pipeline::end(pipeline::shutdown_timeout()));
    }
    extern "C" fn before_fork() {
        let _ = std::panic::catch_unwind(pipeline::before_fork);
    }
    extern "C" fn in_parent() {
        let _ = std::panic::catch_unwind(|| {
            pipeline::after_fork_in_parent();
            pipeline::watch_after_fork();
        });
    }
    extern "C" fn in_child() {
        let _ = std::panic::catch_unwind(pipeline::after_fork_in_child);
    }
    // SAFETY: plain functions without captures.
    unsafe {
        libc::atexit(at_exit);
        at_quick_exit(at_exit);
        if !FORKS_ARE_HANDLED.load(Ordering::Relaxed) {
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
    }
    pipeline::install_signal_drain(pipeline::shutdown_timeout());
    if CRASH_SIGNALS.load(Ordering::Relaxed) {
        pipeline::install_crash_drain();
    }
}
