//! Services of the operating system for the other layers: atomics and futex, clock, folders, fork, native threads.
//!
//! Pipeline stage: none; every other layer of the core uses this one (see ARCHITECTURE.md).
//!
//! Invariants: nothing in this layer knows records, and only the C library is used. A forked child may find a lock
//! whose holder does not exist in the child, or a mapping that it does not have. [`fork_safe_lock`] and [`generation`]
//! handle these two cases.
//! [`platform`] has the calls that only Linux has in this form.
//!
//! Under `--cfg loom` only the parts with models, and those that models of other layers use, are compiled.

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

pub mod barrier;
pub mod crossing;
pub mod fork_safe_lock;
pub mod futex;
#[cfg(not(loom))]
pub mod generation;
/// Process numbers in model runs, which have one process only.
#[cfg(loom)]
pub mod generation {
    /// The process number.
    pub fn process() -> u64 {
        1
    }
}
pub mod progress;
pub mod published;
pub mod sleep;
pub mod sync;

#[cfg(all(test, loom))]
mod models;

#[cfg(not(loom))]
mod available;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod descriptor;
#[cfg(not(loom))]
pub mod folder;
#[cfg(not(loom))]
pub mod handover;
pub mod histogram;
#[cfg(not(loom))]
pub mod identity;
#[cfg(not(loom))]
pub mod kept;
#[cfg(not(loom))]
pub mod kernel;
#[cfg(not(loom))]
pub mod memory_files;
#[cfg(not(loom))]
pub mod opening;
#[cfg(not(loom))]
pub mod own_descriptors;
#[cfg(not(loom))]
pub mod platform;
#[cfg(not(loom))]
pub mod threads;
