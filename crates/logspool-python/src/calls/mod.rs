//! One logging call: from the method that a program calls to the push into the queue.

pub mod capture;
pub mod context;
pub mod emit;
pub mod fields;
pub mod keywords;
pub mod message;
pub mod methods;
pub mod pieces;
pub mod prepare;
pub mod queue_handler;
pub mod queueing;
pub mod record;
pub mod site;
pub mod stream;
pub mod template;
pub mod values;
