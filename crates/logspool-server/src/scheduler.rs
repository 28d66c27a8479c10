//! Answers the queries of clients without slowing down the intake.
//!
//! ```text
//! request -> place -> queue of its peer -> a turn on a query thread -> [pause -> another turn] -> answer
//! ```
//!
//! - A query holds a *place* from its request until its answer is read. The number of places is limited, and peers
//!   share them (`turns.rs`). A request that gets no place is refused at once.
//! - A few threads with low priority answer queries (`threads.rs`). Peers take turns. If there are several threads, no
//!   peer gets all of them.
//! - If a client does not read its answer, the query pauses and frees its thread. The query keeps its place.
//! - If a client disconnects, its query is cancelled, whatever its state.

mod threads;
mod turns;

pub use threads::{QueryPlace, QueryScheduler, TurnResult};
pub use turns::{QueryPhase, SchedulerSizes};
