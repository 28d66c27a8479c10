//! Stores: they keep records and answer queries.

pub mod file;
mod leap;
mod open;
pub mod postgres;
pub mod private;
pub mod sqlite;
mod store;
mod unopened;
pub mod watermark;

pub use open::{Opened, open, open_to_ask};
pub use store::{Answer, Answers, CANCELLED, Found, Next, Progress, Store, StoreError, UNREAD, Written};
