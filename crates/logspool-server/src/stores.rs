//! Stores, which keep records and answer queries.

mod address;
mod clock_jump;
pub(crate) mod deferred;
pub mod file;
pub mod kind;
pub mod postgres;
pub mod private;
pub mod sqlite;
mod table;
pub mod watermark;

pub use crate::store::{
    ANSWER_UNREAD, AnswerProgress, AnswerRow, QUERY_CANCELLED, QueryAnswer, QueryReader, RowFlow, Store, StoreError,
    WriteResult,
};
pub use address::StoreAddress;
pub use table::ALL;
