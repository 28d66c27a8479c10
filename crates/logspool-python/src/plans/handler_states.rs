//! Adopted handlers: their descriptions, and the sinks of their records.
//!
//! Pipeline stage: between *capture* and *writer* (see ARCHITECTURE.md). `python/logspool/adoption/` inspects a handler
//! and describes it. This module keeps the description until one of its inputs changes. It keeps the sink as long as
//! the description names the same stream.

mod closing;
mod describing;
mod handler_sink;
mod renewing;
mod state;
mod table;
mod uninstalling;

pub use closing::{
    await_orphans, catch_up, drain_deferred, flush, flush_beside, flush_local, flush_streams, forget, hand_back,
    release, release_drained, set_catch_up, set_drain,
};
pub use describing::read_watched;
pub use renewing::{handler_state, ready_state, set_follow, state};
pub use state::{Adoption, HandlerState, HandlerVerdict};
pub use table::known;
pub use uninstalling::release_all;
