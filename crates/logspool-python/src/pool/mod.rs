//! `logspool.pool`: the parts of the thread pool that are native.
//!
//! A job's way: [`intake`] (`Pool.submit` and its like make a [`job`] and put it into the queue of [`core`]) ->
//! [`worker`] -> [`future`], with its Python face in [`future_type`]. [`waiting`] leaves the interpreter and comes
//! back for signals; [`event_loop`] and [`completions`] hand results to asyncio and to `as_completed`;
//! [`semaphore`] is the core's semaphore as a Python type. Types are PyO3's where that is cheap enough; the methods whose cost counts are replaced by functions without argument parsing ([`fast`]).

mod completions;
mod core;
mod event_loop;
mod fast;
mod future;
mod future_type;
mod intake;
mod job;
mod semaphore;
mod waiting;
mod worker;

use pyo3::prelude::*;

pub use self::completions::Completions;
pub use self::core::PoolCore;
pub use self::event_loop::EventLoop;
pub use self::intake::Lane;
pub use self::semaphore::Semaphore;
pub use self::worker::Worker;

/// Puts the short ways in front of the types' methods. Called once.
pub fn init(py: Python<'_>) -> PyResult<()> {
    intake::init(py)?;
    semaphore::init(py)
}

/// The type of futures.
pub fn future_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let class = future_type::class(py)?;
    // SAFETY: a live object, attached.
    Ok(unsafe { Bound::from_borrowed_ptr(py, class.as_ptr()) })
}
