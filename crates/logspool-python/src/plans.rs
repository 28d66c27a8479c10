//! Plans of loggers: the inputs of a plan, how plans are made and stored, and when a plan is stale.
//!
//! [`planning`] makes the [`plan`] of a logger from the states of its handlers in [`handler_states`], and puts it into the
//! [`table`]. [`environment`], [`watched`] and [`hooks`] detect the changes that make a plan stale.

pub mod builder;
pub mod callbacks;
pub mod class_version;
pub mod environment;
pub mod field_texts;
pub mod format_parts;
pub mod given_fields;
pub mod handler_states;
pub mod hooks;
pub mod ids;
pub mod known_parts;
pub mod logging_globals;
pub mod native_log;
pub mod needs;
pub mod plan;
pub mod planning;
pub mod reading;
pub mod sink_options;
pub mod span_fields;
pub mod table;
pub mod text_stream;
pub mod tries;
pub mod watched;
