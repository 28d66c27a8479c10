//! What a thread pool needs and Python has no part in: waiting, permits, the order of jobs, the state of each.
//!
//! [`futex`] is the one way to wait. [`Semaphore`] counts permits on it, a [`Promise`] is the state of one job that
//! somebody may wait for, and [`Jobs`] holds the jobs that wait and the workers that sleep.

pub mod futex;
pub mod jobs;
mod promise;
mod semaphore;

pub use jobs::{Counts, Jobs};
pub use promise::{Locked, Promise, State};
pub use semaphore::{MOST_PERMITS, Semaphore, TooManyPermits};

#[cfg(all(test, loom))]
mod models;
