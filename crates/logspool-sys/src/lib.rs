//! Services of the operating system for the other layers: atomics and futex, clock, folders, fork, native threads.
//!
//! Stop on the line: below it; every other layer of the core uses this one.
//!
//! Invariants: nothing here knows records, and only the C library is used. A forked child may meet a lock whose thread
//! does not exist there, or a mapping that it does not have; [`gate`] and [`generation`] handle both.
//! Under `--cfg loom` only the parts that the models of the layers above need are compiled: [`sync`], [`barrier`],
//! [`futex`].

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
