//! The table of stores.

use super::kind::StoreKind;

/// Every kind of store that has addresses. To add a kind, add a file to this folder and a line to this table.
#[rustfmt::skip]
pub const ALL: &[&StoreKind] = &[
    &super::sqlite::SQLITE,
    &super::postgres::POSTGRES,
];
