//! `logspool._native`: the Python shell of the core.
//!
//! Folders, lowest first: [`interpreter`] is the interface to CPython, [`plans`] decides which calls may take the
//! native path, [`calls`] does one logging call. [`pool`] is the thread pool and needs only the interpreter. [`module`]
//! holds the functions that Python imports.
//!
//! Translation and CPython-specific code only; code that can be tested without Python belongs in the core.

#![allow(rustdoc::private_intra_doc_links, reason = "a shared library for Python: nothing in it is public Rust")]

mod calls;
mod flushing;
mod interpreter;
mod module;
mod option_values;
mod options;
mod plans;
mod pool;
mod report;
