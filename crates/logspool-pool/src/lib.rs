//! What a thread pool needs and Python has no part in: waiting, permits, the order of jobs, the state of each.
//!
//! Stop on the line: beside it; the pool runs the jobs of a program. [`logspool_sys::futex`] is the one way to wait.
//! [`Semaphore`] counts permits on it, a [`Promise`] is the state of one job that somebody may wait for, and [`Jobs`]
//! holds the jobs that wait and the workers that sleep. [`Timers`] holds what is due later, a [`Channel`] carries values
//! from jobs to whoever takes them, [`Times`] counts how long jobs waited and ran, [`PoolReading`] is all of it as
//! numbers.
//!
//! Invariants: no job is lost or run twice, and no sleeper misses its wake-up; the models of each file check it. This
//! layer starts no thread and calls no job.

pub mod channel;
pub mod jobs;
mod promise;
#[cfg(not(loom))]
mod reading;
mod semaphore;
pub mod timers;
#[cfg(not(loom))]
pub mod times;

pub use channel::Channel;
pub use jobs::{Counts, Jobs};
pub use promise::{Locked, Promise, State};
#[cfg(not(loom))]
pub use reading::PoolReading;
pub use semaphore::{MOST_PERMITS, Semaphore, TooManyPermits};
pub use timers::Timers;
#[cfg(not(loom))]
pub use times::{BUCKETS, Times};

#[cfg(all(test, loom))]
mod models;
