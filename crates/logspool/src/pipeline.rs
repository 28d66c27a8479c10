//! The pipeline of the process, from lanes to sinks, as the language bindings see it.
//!
//! This module is the whole interface for a binding: `push` and `make_room` are the hot path, and all other functions
//! are for configuration, barriers and shutdown. The pipeline (segment, outlets, threads) begins with the first
//! definition or record. A forked child begins a new pipeline and never touches the parent's pipeline. The child waits
//! for no lock of the parent, and frees no memory of the parent.
//!
//! The files, lowest first. Each file uses only files of its own line and of earlier lines:
//! - `options`, `settings`: the option types, and the option values in force;
//! - `route_table`, `spooler`, `watcher`, `idle_writer`, then `state`: the fields of a pipeline;
//! - `slot`: which pipeline the process has; `waiting`, `door`: waits, and the door that makes pushes take their slow
//!   path;
//! - `truncated`, `relatives`, `relief`, `recovery`: deliveries for dead processes; `queue_place`: where the queue is;
//! - `beginning`: makes a pipeline; `writers`, `orphan_watch`, `spool_thread`, `hosting`, `threads`: the native threads;
//! - `room`, `admission`, `flushing`, `durability`, `routing`, `snapshot`, `outlets`, `patience`,
//!   `refused`: the calls of a binding;
//! - `in_handler`, `crash`, `signals`, `life`, `process_events`: signals, forks and the end.

mod admission;
mod beginning;
mod crash;
mod door;
mod durability;
mod flushing;
mod hosting;
mod idle_writer;
mod in_handler;
mod late;
mod life;
mod options;
mod orphan_watch;
mod outlets;
mod patience;
mod process_events;
mod queue_place;
mod recovery;
mod refused;
mod relatives;
mod relief;
mod room;
mod route_table;
mod routing;
mod settings;
mod signals;
mod slot;
mod snapshot;
mod spool_thread;
mod spooler;
mod state;
mod threads;
mod truncated;
mod unwritten;
mod waiting;
mod watcher;
mod writers;

pub use admission::{
    Push, abandon, commit, count_interrupting, is_interrupting, lane_view, make_room, push, refuse, reserve, wake_after,
};
pub use crash::{install_crash_drain, remove_crash_drain};
pub use door::settle;
pub use durability::{DurableWait, SyncWait, await_durable, flush_durable};
pub use flushing::{Flush, flush, flush_local};
pub use late::{call_at_exit, expect_late_records};
pub use life::{
    after_fork_in_child, after_fork_in_parent, before_fork, configure, continue_after, drain, empty, end, hand_over,
    revert_end, watch_after_fork,
};
pub use options::{BlockingTimeout, Durability, Fallback, MAX_QUEUE_BYTES, Options, OptionsError};
pub use outlets::{
    close_sink, define_format, define_route, define_site, is_leaving, open_sink, release_route, retire_sink,
    rotation_count, route_definition, sinks_at, site_definition,
};
pub use patience::{NextAttempt, PlaceAttempt, until_place};
pub use process_events::{ForkHooks, handle_process_events};
pub use queue_place::MIN_FREE_BYTES;
pub use recovery::{orphans, recover, recover_targets, running, sidecars};
pub use refused::show_refused;
pub use relatives::{RecoveryCounts, recovery_counts};
pub use room::{Refusal, Room, Waiter};
pub use settings::shutdown_timeout;
pub use signals::install_signal_drain;
pub use slot::{id_epoch, is_running};
pub use snapshot::snapshot;
pub use state::Pipeline;
pub use truncated::{note_truncated, program_begins};
pub use unwritten::report_unwritten;
