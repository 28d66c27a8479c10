//! One logging call: from the method that a program calls to the push into the queue.
//!
//! [`capture`] replaces `Logger.info` and its siblings: is the level enabled, is the plan valid, which [`site`], which
//! [`message`], which [`keywords`]; the values become [`pieces`], which are pushed. On the stock path
//! [`handler_methods`] replace the handlers' own: [`emit`] queues finished lines, [`record`] the values of a record.
//! [`stock`] calls the stock functions for everything that logspool cannot serve.

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
