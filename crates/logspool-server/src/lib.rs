//! The logspool service collects records of many processes, stores them in bulk, and answers queries.
//!
//! The path of a record: bytes of a peer -> [`sources`] (frames) -> [`decoders`] (pure functions, one file for each
//! protocol) -> [`record::Record`] -> [`batch`] -> [`intake`] (one queue for each store) -> [`stores`] -> an ack to the
//! peer. Queries go the other way: [`query`] -> [`stores`] -> [`show`], over [`http`] or from the command line
//! ([`cli`]).

#![forbid(unsafe_code)]

/// Declares the modules of a folder, and the table of their declarations: one line for each module.
macro_rules! table {
    (
        $(#[$about:meta])*
        $visibility:vis const $name:ident: &[&$declared:ty];
        $(mod $module:ident; use $home:ident::$declaration:ident;)+
    ) => {
        $($visibility mod $module;)+

        $(#[$about])*
        $visibility const $name: &[&$declared] = &[$(&$home::$declaration),+];
    };
}

pub use logspool_decode::{batch, decoders, record, value};

pub mod address;
pub mod adopt;
pub mod budget;
pub mod cancel;
pub mod cli;
mod clock;
pub mod config;
pub mod connection;
pub mod delivery;
mod descriptors;
pub mod fence;
pub mod http;
pub mod identity;
pub mod intake;
mod kernel_drops;
pub mod known_protocols;
pub mod limits;
pub mod metrics;
pub mod opening;
pub mod origin;
pub mod peer;
pub mod pipeline;
pub mod protocols;
pub mod query;
pub mod query_memory;
pub mod record_id;
pub mod remarks;
mod resolved;
pub mod scheduler;
pub mod sender_zones;
pub mod service;
pub mod share;
pub mod show;
pub mod sources;
pub mod stop;
pub mod store;
pub mod stores;
pub mod tails;
pub mod visible;
mod warnings;
