//! What the operating system gives the other layers: atomics and futex, clock, folders, fork, native threads.
//!
//! Stop on the line: below it; every other layer of the core stands on this one.
//!
//! Invariants: nothing here knows what a record is, and nothing but the C library is used. What a forked child may meet
//! (a lock of a thread that does not exist there, a mapping that it does not have) is dealt with here, in [`gate`] and
//! [`generation`].
//!
//! Under `--cfg loom` only the parts with models, and those that models of other layers use, are compiled.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

pub mod barrier;
pub mod crossing;
pub mod futex;
pub mod gate;
#[cfg(not(loom))]
pub mod generation;
/// The models know one process.
#[cfg(loom)]
pub mod generation {
    /// Its number.
    pub fn process() -> u64 {
        1
    }
}
pub mod nap;
pub mod progress;
pub mod published;
pub mod sync;

#[cfg(all(test, loom))]
mod models;

#[cfg(not(loom))]
mod available;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod folder;
#[cfg(not(loom))]
pub mod handover;
#[cfg(not(loom))]
pub mod held;
pub mod histogram;
#[cfg(not(loom))]
pub mod identity;
#[cfg(not(loom))]
pub mod kernel;
#[cfg(not(loom))]
pub mod threads;
