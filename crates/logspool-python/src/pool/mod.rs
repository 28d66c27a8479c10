//! `logspool.pool`: the parts of the thread pool that are native.
//!
//! A job's way: [`verbs`] (`Pool.submit` and its like) -> [`intake`] makes a [`job`] and puts it into the queue of
//! [`core`] -> [`worker`] -> [`future`], with its Python face in [`future_type`]. [`view`] is `Pool.options`; what it
//! asks for makes a job's [`extra`], such as [`results`]. [`timers`] does all that comes later: [`timer_type`] and
//! [`schedule`] are its handles. [`waiting`] leaves the interpreter and comes back for signals; [`event_loop`] and
//! [`completions`] hand results to asyncio and to `as_completed`; [`semaphore`] is the core's semaphore as a Python
//! type. Types are PyO3's where that is cheap enough; methods whose cost counts are raw functions ([`fast`]).

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
mod methods;
mod results;
mod schedule;
mod semaphore;
mod shared;
mod timer_type;
mod timers;
mod verbs;
mod view;
mod wishes;
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

/// Puts the short ways in front of the types' methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    verbs::init(py)?;
    semaphore::init(py)
}

/// The types of futures and of timers.
pub fn future_classes(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Bound<'_, PyAny>)> {
    Ok((future_type::class(py)?.bind(py).to_owned(), timer_type::class(py)?.bind(py).to_owned()))
}
