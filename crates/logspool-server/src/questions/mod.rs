//! Questions from clients, answered beside the intake without slowing it down.
//!
//! ```text
//! request -> place -> queue of its peer -> a turn on a query thread -> [pause -> another turn] -> answer
//! ```
//!
//! - A question holds a *place* from its request until its answer is read. Places are few and shared between peers
//!   (`turns.rs`); a request that gets none is refused at once.
//! - A few threads of low priority answer (`threads.rs`). Peers take turns, and no peer gets all threads.
//! - A question whose client does not read its answer pauses, and gives its thread back. It keeps its place.
//! - A question whose client has gone is cancelled, wherever it is.

mod threads;
mod turns;

pub use threads::{Place, Questions, Turn};
pub use turns::{Counts, Phase, Sizes};
