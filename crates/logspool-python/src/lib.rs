//! `logspool._native`: the Python interface of the core.
//!
//! The modules, lowest layer first: [`interpreter`] is the interface to CPython, [`plans`] decides which calls may take
//! the native path, and [`calls`] does one logging call. [`events`] renders and queues the events of structlog.
//! [`pool`] is the thread pool and needs only [`interpreter`].
//! [`module`] holds the functions that Python imports.
//!
//! This crate contains only conversions and CPython-specific code. Code that can be tested without Python belongs in
//! the core.

#![allow(rustdoc::private_intra_doc_links, reason = "a shared library for Python: nothing in it is public Rust")]

mod calls;
mod events;
mod flushing;
mod interpreter;
mod module;
mod option_values;
mod options;
mod plans;
mod pool;
mod report;
