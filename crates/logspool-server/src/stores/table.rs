//! The table of stores.

use super::kind::Kind;

/// Every kind of store that has addresses. A new one is a file in this folder and a line here.
#[rustfmt::skip]
pub const ALL: &[&Kind] = &[
    &super::sqlite::SQLITE,
    &super::postgres::POSTGRES,
];
