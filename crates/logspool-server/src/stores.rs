//! Stores: they keep records and answer queries.

mod address;
pub mod file;
pub mod kind;
mod leap;
mod open;
pub mod postgres;
pub mod private;
pub mod sqlite;
mod store;
mod table;
mod unopened;
pub mod watermark;

pub use address::StoreAddress;
pub use open::{Opened, open, open_to_ask};
pub use store::{Answer, Answers, CANCELLED, Found, Next, Progress, Store, StoreError, UNREAD, Written};
pub use table::ALL;
