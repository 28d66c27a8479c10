//! Adopted handlers: what they are made of and the sink that their records go to.
//!
//! Stop on the line: between *capture* and *writer*. `python/logspool/_adopt.py` looks at a handler and says what
//! it is; here that answer is kept for one epoch, and the sink for as long as the answer names the same stream.

mod closing;
mod describing;
mod renewing;
mod state;
mod table;
mod uninstalling;

pub use closing::{await_orphans, catch_up, flush, flush_beside, forget, give_back, release, set_catch_up};
pub use renewing::{handler_state, ready_state, set_follow, state};
pub use state::{Adoption, State, Verdict};
pub use table::known;
pub use uninstalling::release_all;
