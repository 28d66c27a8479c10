//! The table of stores.

use super::kind::StoreKind;

/// Every kind of store that has addresses. A new one is a file in this folder and a line here.
#[rustfmt::skip]
pub const ALL: &[&StoreKind] = &[
    &super::sqlite::SQLITE,
    &super::postgres::POSTGRES,
];
