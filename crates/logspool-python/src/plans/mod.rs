//! Plans of loggers: the inputs of a plan, how plans are made and stored, and when a plan is stale.
//!
//! [`planning`] makes the [`plan`] of a logger from the states of its handlers in [`adoption`], and puts it into the
//! [`table`]. [`environment`], [`watched`] and [`hooks`] detect the changes that make a plan stale.

pub mod adoption;
pub mod builder;
pub mod environment;
pub mod format_parts;
pub mod hooks;
pub mod ids;
pub mod logging_globals;
pub mod needs;
pub mod plan;
pub mod planning;
pub mod python_half;
pub mod reading;
pub mod sink_options;
pub mod table;
pub mod text_stream;
pub mod tries;
pub mod watched;
