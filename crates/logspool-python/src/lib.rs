//! `logspool._native`: the Python shell of the core.
//!
//! A call's way: [`methods`] (in the place of `Logger.info` and its like) -> [`capture`] (is it enabled, does the
//! [`plan`] hold, which [`site`], what [`message`], which [`keywords`])
//! -> [`queueing`] -> the core's pipeline. [`planning`] makes
//! plans from what [`adoption`] knows of handlers; [`hooks`] and [`environment`] tell when they are stale; [`emit`]
//! serves adopted handlers that stock logging reaches, [`record`] reads what they get by value. [`pool`] stands beside.
//!
//! Translation and CPython-specific code only; what can be tested without Python belongs to the core.

#![allow(rustdoc::private_intra_doc_links, reason = "a shared library for Python: nothing in it is public Rust")]

mod adoption;
mod capture;
mod context;
mod emit;
mod environment;
mod fields;
mod flushing;
mod frame;
mod hooks;
mod ids;
mod keywords;
mod leaving;
mod message;
mod methods;
mod module;
mod names;
mod object;
mod options;
mod pieces;
mod plan;
mod planning;
mod plans;
mod pool;
mod prepare;
mod queue_handler;
mod queueing;
mod record;
mod report;
mod sink_options;
mod site;
mod stream;
mod template;
mod tries;
mod values;
mod waiting;
mod world;
