//! Native parts of the thread pool `logspool.pool`.
//!
//! The path of a job:
//!
//! - [`verbs`] has `Pool.submit` and similar methods. [`intake`] makes a [`job`] from their arguments and adds it to
//!   the
//!   queue of [`core`].
//! - A [`worker`] runs the job ([`running`]) and ends its [`future`], whose Python type is in [`future_type`].
//! - [`view`] is the result of `Pool.options`. Its options become the job's [`extra`], for example [`results`].
//! - [`timers`] keeps all jobs that start later. Their Python handles are [`timer_type`] and [`schedule`].
//! - [`waiting`](crate::interpreter::waiting) waits outside the interpreter and returns to it for signals.
//! - [`event_loop`] passes results to asyncio, and [`completions`] passes ended futures to `as_completed`.
//! - [`semaphore`] is the Python type of the core's semaphore.
//!
//! Types are made by PyO3 where that is cheap enough. Methods that are called for each job are raw functions
//! ([`fast`]).

mod arguments;
mod completions;
mod core;
mod event_loop;
mod extra;
mod fast;
mod future;
mod future_type;
mod intake;
mod job;
mod job_options;
mod methods;
mod results;
mod run_by;
mod running;
mod schedule;
mod semaphore;
mod shared;
mod timer_type;
mod timers;
mod verbs;
mod view;
mod worker;

use pyo3::prelude::*;

pub use self::completions::Completions;
pub use self::core::PoolCore;
pub use self::event_loop::EventLoop;
pub use self::results::Results;
pub use self::schedule::Schedule;
pub use self::semaphore::Semaphore;
pub use self::timers::{after_fork, run as run_timers, set_start};
pub use self::view::View;
pub use self::worker::Worker;

/// Installs the raw functions as methods of their Python types. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    verbs::init(py)?;
    semaphore::init(py)
}

/// The types of futures and of timers.
pub fn future_classes(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    Ok((future_type::class(py)?.bind(py).to_owned(), timer_type::class(py)?.bind(py).to_owned()))
}
