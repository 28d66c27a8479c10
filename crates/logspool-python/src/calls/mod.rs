//! One logging call: from the method that a program calls to the push into the queue.
//!
//! [`capture`] replaces `Logger.info` and its siblings. It checks that the level is enabled and the plan is valid,
//! finds the [`site`], and reads the [`message`] and the [`keywords`]. The values become [`pieces`], which are pushed
//! into the queue. On the stock path, [`handler_methods`] replaces the methods of handlers: [`emit`] queues finished
//! lines, and [`record`] queues the values of a record. [`stock`] calls the stock functions for everything that
//! logspool cannot serve.

pub mod capture;
pub mod context;
pub mod emit;
pub mod fields;
pub mod handler_methods;
pub mod keywords;
pub mod message;
pub mod methods;
pub mod pieces;
pub mod prepare;
pub mod queue_handler;
pub mod record;
pub mod site;
pub mod stock;
pub mod template;
