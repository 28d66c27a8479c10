//! The tests of the service, in one program: linking one is faster than linking thirty.
//!
//! Each file is a module. `scripts/rust_tests.py` runs each module in a process of its own.
//! `cargo test -p logspool-server --test all -- MODULE::` runs one.

/// The full name of a test of the calling module, for a process that runs only this test.
macro_rules! own_test {
    ($name:expr) => {
        [module_path!().split_once("::").expect("a module of this program").1, "::", $name].concat()
    };
}

mod config_reference;
mod corpus_lines;
mod doors;
mod file_store;
mod forward;
mod gelf;
mod otlp;
mod pickles;
mod postgres;
mod postgres_answers;
mod postgres_crashes;
mod postgres_store;
mod postgres_tls;
mod postgres_unusable;
mod private_places;
mod protocol_contract;
mod query_agrees;
mod query_language;
mod show;
mod small_place;
mod sqlite_damage;
mod sqlite_faults;
mod sqlite_index;
mod sqlite_killed;
mod sqlite_once;
mod sqlite_retention;
mod sqlite_rollover;
mod sqlite_rows;
mod sqlite_support;
mod sqlite_together;
mod sqlite_versions;
mod store_contract;
mod trees;
