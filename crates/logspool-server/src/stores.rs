//! Stores, which keep records and answer queries. To add one, add its file and one line to the table below.

mod address;
mod clock_jump;
pub(crate) mod deferred;
pub mod file;
pub mod kind;
pub mod mark;
pub mod private;

pub use crate::store::{
    ANSWER_UNREAD, AnswerProgress, AnswerRow, GapCounts, LeftOut, QUERY_CANCELLED, QueryAnswer, QueryReader, RowFlow,
    RowValues, Store, StoreError, WriteResult,
};
pub use address::StoreAddress;

table! {
    /// Every kind of store that has addresses.
    pub const ALL: &[&kind::StoreKind];
    mod sqlite; use sqlite::SQLITE;
    mod postgres; use postgres::POSTGRES;
}
