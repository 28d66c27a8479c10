//! Stores, which keep records and answer queries.

mod address;
mod clock_jump;
mod deferred;
pub mod file;
pub mod kind;
mod open;
pub mod postgres;
pub mod private;
pub mod sqlite;
mod store;
mod table;
pub mod watermark;

pub use address::StoreAddress;
pub use open::{OpenedStores, open, open_for_queries};
pub use store::{
    ANSWER_UNREAD, AnswerProgress, AnswerRow, QUERY_CANCELLED, QueryAnswer, QueryReader, RowFlow, Store, StoreError,
    WriteResult,
};
pub use table::ALL;
