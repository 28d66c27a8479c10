//! HTTP: queries, live tails, metrics, the web page, and records that are sent by HTTP.
//!
//! A foreign web page in a browser on this machine must not be able to query or to write records. So a request must use
//! a known host name (see `guard`). A request with records must have a content type that a form of a foreign page
//! cannot send. Otherwise it must not have the headers that only browsers send.

mod access;
mod answer;
mod body;
mod connection;
mod context;
mod doors;
mod error;
mod guard;
mod ingest;
mod interrupted;
mod length_conflict;
mod otlp;
mod page;
mod parameters;
mod paths;
pub mod protocol;
mod queries;
mod routes;
mod state;
mod tail;

pub use access::AccessControl;
pub use connection::connection;
pub use interrupted::reason;
pub use routes::router;
pub use state::Stats;
