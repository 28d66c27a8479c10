//! Installs what runs when the process forks, crashes or ends.
//!
//! Atomics belong in `queue` and `stats`; those of this file are an exception: the state of this installation.

use std::sync::atomic::{AtomicBool, Ordering};

use logspool::option::{OptionTable, ordered};
use logspool::pipeline::{self, ForkHooks, Options};

use crate::json;
use crate::status::{Failure, Status};

static BEGUN: AtomicBool = AtomicBool::new(false);
static CRASH_SIGNALS: AtomicBool = AtomicBool::new(true);
/// Whether the language binding handles forks itself.
static FORKS_ARE_HANDLED: AtomicBool = AtomicBool::new(false);

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
    let given = json::option_values(Options::ROWS, object)?;
    let refused = |error: logspool::option::OptionError| Failure::invalid(error.to_string());
    let options = ordered("logspool_configure()", Options::ROWS, given).and_then(|all| Options::from_values(&all));
    let options = options.map_err(refused)?;
    if let Some(name) = options.python_only() {
        return Err(Failure::invalid(format!("{name} works in Python only")));
    }
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
    let forks = if FORKS_ARE_HANDLED.load(Ordering::Relaxed) { ForkHooks::Language } else { ForkHooks::Libc };
    pipeline::handle_process_events(forks, CRASH_SIGNALS.load(Ordering::Relaxed));
}
