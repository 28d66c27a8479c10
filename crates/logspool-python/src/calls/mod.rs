//! One logging call: from the method that a program calls to the push into the queue.
//!
//! [`capture`] is in the place of `Logger.info` and its like: is the level enabled, does the plan hold, which
//! [`site`], which [`message`], which [`keywords`]; the values become [`pieces`], which are pushed. On the stock path
//! [`handler_methods`] are in the place of the handlers' own: [`emit`] queues finished lines, [`record`] the values of
//! a record. What logspool cannot serve goes to [`stock`].

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
