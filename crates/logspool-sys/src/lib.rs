//! What the operating system gives the other layers: atomics and futex, clock, folders, fork, native threads.
//!
//! Stop on the line: below it; every other layer of the core stands on this one.
//!
//! Invariants: nothing here knows what a record is, and nothing but the C library is used. What a forked child may meet
//! (a lock of a thread that does not exist there, a mapping that it does not have) is dealt with here, in [`gate`] and
//! [`generation`].
//!
//! Under `--cfg loom` only what the models of the layers above need is compiled: [`sync`], [`barrier`], [`futex`].

#![cfg_attr(loom, allow(dead_code, reason = "under loom there is only what the models need"))]

pub mod barrier;
pub mod futex;
pub mod sync;

#[cfg(not(loom))]
mod available;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod folder;
#[cfg(not(loom))]
pub mod gate;
#[cfg(not(loom))]
pub mod generation;
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
pub mod nap;
#[cfg(not(loom))]
pub mod progress;
#[cfg(not(loom))]
pub mod threads;
