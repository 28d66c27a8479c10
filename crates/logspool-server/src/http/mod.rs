//! HTTP: queries, live tails, metrics, the web page, and records that are sent by HTTP.
//!
//! A web page in a browser on this machine must not be able to query or to write. So a request must use a known host
//! name (`guard`). Records must have a content type that the form of a foreign page cannot have, or must come without
//! the headers that only browsers send.

mod access;
mod answer;
mod body;
mod connection;
mod context;
mod error;
mod guard;
mod ingest;
mod interrupted;
mod length_conflict;
mod otlp;
mod page;
mod parameters;
mod paths;
mod queries;
mod routes;
mod state;
mod tail;

pub use access::AccessControl;
pub use connection::connection;
pub use interrupted::reason;
pub use routes::router;
pub use state::Stats;
