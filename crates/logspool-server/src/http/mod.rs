//! HTTP: queries, live tails, metrics, the web page, and records that are sent by HTTP.
//!
//! A web page in a browser on this machine must not be able to query or to write. So a request must use a known host
//! name (`guard`). Records must have a content type that the form of a foreign page cannot have, or must come without
//! the headers that only browsers send.

mod access;
mod answer;
mod body;
mod broken_off;
mod connection;
mod context;
mod guard;
mod ingest;
mod otlp;
mod page;
mod parameters;
mod paths;
mod problem;
mod questions;
mod routes;
mod state;
mod tail;
mod two_lengths;

pub use access::RequestAccess;
pub use broken_off::reason;
pub use connection::connection;
pub use routes::router;
pub use state::Stats;
