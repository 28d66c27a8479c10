//! `logspool._native`: the Python shell of the core.
//!
//! Rooms, lowest first: [`interpreter`] is CPython's side, [`plans`] says which calls may go the native way,
//! [`calls`] does one logging call. [`pool`] is the thread pool and needs the interpreter only. [`module`] is what
//! Python imports.
//!
//! Translation and CPython-specific code only; what can be tested without Python belongs to the core.

#![allow(rustdoc::private_intra_doc_links, reason = "a shared library for Python: nothing in it is public Rust")]

mod calls;
mod flushing;
mod interpreter;
mod module;
mod options;
mod plans;
mod pool;
mod report;
