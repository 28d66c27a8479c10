//! What the stores are compared with: the plainest way to write the same rows, with the same durability.

#![allow(dead_code, reason = "each program uses what it needs")]

pub mod postgres;
pub mod sqlite;

/// Rows of a transaction.
pub const TRANSACTION_ROWS: usize = 10_000;
