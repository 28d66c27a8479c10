//! The parts of a thread pool that need no Python: waiting, permits, the order of jobs, the state of each job.
//!
//! Pipeline stage: none; the pool runs the jobs of a program next to the pipeline (see ARCHITECTURE.md).
//! [`logspool_sys::futex`] is the only way to wait. [`Semaphore`] counts permits. A [`Promise`] is the state of one job
//! that a thread may wait for. [`Jobs`] holds the waiting jobs and the sleeping workers, [`Timers`] the jobs that are
//! due later. A [`Channel`] carries values from jobs to their consumers. [`WorkerTimes`] counts how long jobs waited
//! and ran. [`PoolReading`] holds all these numbers.
//!
//! Invariants: no job is lost or run twice, and no sleeping thread misses its wake-up. The loom models check these
//! invariants. This layer starts no thread and calls no job.

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
pub use jobs::{JobCounts, Jobs};
pub use promise::{JobState, Promise};
#[cfg(not(loom))]
pub use reading::PoolReading;
pub use semaphore::{Semaphore, TooManyPermits};
pub use timers::Timers;
#[cfg(not(loom))]
pub use times::WorkerTimes;

#[cfg(all(test, loom))]
mod models;
