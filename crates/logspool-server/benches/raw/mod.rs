//! The baseline for the stores: the plainest way to write the same rows, with the same durability.

#![allow(dead_code, reason = "each program uses what it needs")]

pub mod postgres;
pub mod sqlite;

/// Number of rows in a transaction.
pub const TRANSACTION_ROWS: usize = 10_000;
