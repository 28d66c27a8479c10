//! HTTP: questions, live tails, metrics, the web page, and records from those who send them by HTTP.
//!
//! A page in a browser of this machine must not be able to ask or to write: requests are taken only under a known name
//! (`guard`), and records only with a content type that a form of a foreign page cannot have, or without the words that
//! only browsers say.

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

pub use access::Access;
pub use broken_off::reason;
pub use connection::connection;
pub use routes::router;
pub use state::Stats;
