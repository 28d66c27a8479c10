//! Queries of clients, answered without slowing down the intake.
//!
//! ```text
//! request -> place -> queue of its peer -> a turn on a query thread -> [pause -> another turn] -> answer
//! ```
//!
//! - A query holds a *place* from its request until its answer is read. Places are limited and shared between peers
//!   (`turns.rs`); a request that gets no place is refused at once.
//! - A few threads of low priority answer queries (`threads.rs`). Peers take turns, and no peer gets all threads.
//! - A query whose client does not read its answer pauses and frees its thread. It keeps its place.
//! - A query whose client has disconnected is cancelled in any state.

mod threads;
mod turns;

pub use threads::{QueryPlace, QueryScheduler, TurnResult};
pub use turns::{QueryCounts, QueryPhase, SchedulerSizes};
