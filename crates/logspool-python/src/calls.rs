//! One logging call: from the method that a program calls to the push into the queue.
//!
//! [`capture`] replaces `Logger.info` and its siblings. It checks that the level is enabled and the plan is valid,
//! finds the [`site`], and reads the [`message`] and the [`keywords`]. The values become [`pieces`], which are pushed
//! into the queue. The text of an exception comes from [`traceback`]. If Python code has to see the record,
//! [`record_call`] does the call: [`log_record`] makes the record, [`record_redaction`]
//! redacts it, and [`filtering`] runs filters. [`adapter`] replaces
//! the methods of `LoggerAdapter`. [`record_queue`] is the queue of `logspool.ThreadHandler`. [`handler_methods`] replaces the methods of handlers, which receive a record:
//! [`emit`] queues finished lines that [`formatting`] makes, [`deferring`] leaves that to another thread, [`text_line`]
//! queues lines that have no record, and [`record`] queues the values of a record with its [`record_texts`]. [`stock`]
//! calls the stock functions for everything that logspool cannot serve.

pub mod adapter;
pub mod attribute;
pub mod capture;
pub mod context;
pub mod deferring;
pub mod emit;
pub mod field_values;
pub mod fields;
pub mod filtering;
pub mod format_time;
pub mod formatter_methods;
pub mod formatting;
pub mod handler_methods;
pub mod keywords;
pub mod log_record;
pub mod message;
pub mod methods;
pub mod nested_fields;
pub mod percent_line;
pub mod pieces;
pub mod prepare;
pub mod queue_handler;
pub mod queue_listener;
pub mod record;
pub mod record_attributes;
pub mod record_call;
pub mod record_class;
pub mod record_init;
pub mod record_message;
pub mod record_queue;
pub mod record_redaction;
pub mod record_site;
pub mod record_template;
pub mod record_texts;
pub mod rules;
pub mod site;
pub mod stock;
pub mod template;
pub mod text_line;
pub mod threading;
pub mod traceback;
pub mod unmade_record;
