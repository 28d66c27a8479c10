//! Fields of an outlet, the queue between the collector and one sink.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use logspool_lanes::segment::Segment;
use logspool_lanes::segment::layout::{LEVEL_CLASSES, SinkHead, Table};
use logspool_record::definition::SinkDefinition;

use super::entries::{Entries, TransitFacts};
use super::members::Members;
use super::spool_state::{Bell, SpoolSlot, SpoolState};
use super::syncs::{SyncRule, Syncs, UnsyncedBatches};
use crate::lateness::Lateness;
use crate::meters::SinkMeters;
use crate::overflow::{Budget, Overflow};
use crate::sink::Sink;
use crate::sinks::{self, SinkPlace, Traits};
use crate::stats::DropReason;

/// Value of `front_batch` and `unspilled_batch` if there is no such chunk.
pub const NONE: u64 = u64::MAX;

/// Value of `error_number` for an error that has a text instead of a system error number.
pub(super) const TEXT: i32 = -1;

#[derive(Debug)]
pub(super) struct OutletState {
    pub(super) entries: Entries,
    /// Number of entries, from the front of the queue, that the sink's courier has taken.
    pub(super) taken: usize,
    /// Number of records of the first entry that are given up, by level class.
    pub(super) given_up: [u32; LEVEL_CLASSES],
    /// Whether the writer must follow changes of the group now.
    pub(super) regroups: bool,
    /// Facts to note for the next batch that is queued.
    pub(super) transit_facts: TransitFacts,
    /// Number of the last record that has arrived at the destination.
    pub(super) number: u64,
    pub(super) overflow: Overflow,
    pub(super) spool: SpoolState,
    pub(super) leave: bool,
    /// Why no record will be written any more. Records that come later are dropped for the same reason.
    pub(super) dead: Option<DropReason>,
    /// Time at which the writer finished its last entry, on the monotonic clock.
    pub(super) finished_at: u64,
    /// Requested flushes. Each has its ticket, and the last batch that must be written before the flush is answered.
    pub(super) requested_flushes: VecDeque<(u64, u64)>,
    /// Ticket of the flush after which the closed sink is released. It is set when the sink was closed; the release
    /// also waits for an empty queue.
    pub(super) closing: Option<u64>,
    pub(super) thread_runs: bool,
    /// Bytes of lines and number of marks of the chunk that was written last.
    pub(super) usual: (usize, usize),
    pub(super) unsynced: UnsyncedBatches,
    /// Text of the error if `error_number` is [`TEXT`].
    pub(super) error: String,
}

impl OutletState {
    /// Number of entries that the writer holds or may hold.
    pub(super) fn held_entries(&self) -> usize {
        self.taken.max(1)
    }
}

/// The queue between the collector and one sink.
pub struct Outlet {
    /// Id of the sink in the sink table.
    pub id: u32,
    /// Definition with which the sink was opened.
    pub definition: SinkDefinition,
    /// How the pipeline treats the sink.
    pub traits: Traits,
    /// Whether the sink holds a duplicate of a descriptor that the program may close.
    pub is_lent: bool,
    /// Whether a later start of the program can write the records that this process leaves.
    pub is_recoverable: bool,
    pub(super) users: AtomicU32,
    pub(super) members: Members,
    pub(super) closed: AtomicBool,
    /// Position of the sink in the order of released sinks; 0 before its release.
    pub(super) released: AtomicU64,
    pub(super) segment: Arc<Segment>,
    pub(super) sink: Mutex<Option<Box<dyn Sink>>>,
    pub(super) budget: Arc<Budget>,
    /// Wakes the spool's thread, if the process has spools.
    pub(super) bell: Option<Arc<Bell>>,
    /// State of this sink's spool. Only the spool's thread locks it; `close_spool` does so after that thread has ended.
    pub(super) spool: Mutex<SpoolSlot>,
    /// Whether the destination confirms records after they were sent.
    pub(super) confirms: bool,
    pub(super) state: Mutex<OutletState>,
    pub(super) changed: Condvar,
    pub(super) front_batch: AtomicU64,
    pub(super) unspilled_batch: AtomicU64,
    /// Time at which the oldest chunk was queued that is only in an overflow file. 0 means that there is no such chunk.
    /// 1 means the same, but there are chunks in the spool.
    pub(super) overflowing_since: AtomicU64,
    pub(super) writing_since: AtomicU64,
    /// Time until which a healthy sink may be busy with the writer's last chunk, if that chunk is large; otherwise 0.
    pub(super) large_until: AtomicU64,
    /// Start of the running sync, on the monotonic clock; 0 if no sync is running.
    pub(super) syncing_since: AtomicU64,
    pub(super) sync_error: AtomicI32,
    pub(super) syncs: Syncs,
    pub(super) error_number: AtomicI32,
    pub(super) notify: AtomicBool,
    pub(super) begun: AtomicBool,
    /// Whether records were dropped because the program has closed the sink's descriptor.
    pub(super) lost_descriptor: AtomicBool,
    /// Whether records were dropped since the last flush, because their overflow could not be read again.
    pub(super) has_unreadable: AtomicBool,
    /// Whether [`crate::pipeline::close_sink`] has waited for the sink's records until its timeout.
    pub(super) timed_out: AtomicBool,
    pub(super) meters: SinkMeters,
    /// Newest flush ticket whose records are all written to this sink.
    pub flushed_ticket: AtomicU64,
    /// Number of times that the first member has switched to another file. Language bindings keep this counter longer
    /// than the outlet.
    pub rotation_count: Arc<AtomicU64>,
    /// Time that was already spent on flushes of this sink that timed out.
    pub lateness: Lateness,
}

impl Outlet {
    /// Makes an outlet for an open sink. `place` is the file to which it writes, if other sinks may write there too.
    pub fn new(
        id: u32,
        definition: SinkDefinition,
        place: Option<SinkPlace>,
        sink: Box<dyn Sink>,
        segment: Arc<Segment>,
        budget: Arc<Budget>,
    ) -> Self {
        let (members, first, mut sink) = Members::new(id, &definition, place, sink);
        let overflow = Overflow::new(segment.clone(), budget.clone(), id);
        let stream = sink.courier().and_then(|courier| courier.stream());
        if let Some(stream) = stream {
            segment.sink(Table::Sinks.slot(id)).begin_stream(stream.id, stream.epoch);
        }
        Self {
            id,
            traits: sinks::traits(&definition),
            is_lent: sinks::is_borrowed(&definition),
            definition,
            is_recoverable: false,
            users: AtomicU32::new(1),
            members,
            closed: AtomicBool::new(false),
            released: AtomicU64::new(0),
            segment,
            confirms: sink.courier().is_some(),
            sink: Mutex::new(Some(sink)),
            budget,
            bell: None,
            spool: Mutex::default(),
            state: Mutex::new(OutletState {
                entries: Entries::default(),
                taken: 0,
                given_up: [0; LEVEL_CLASSES],
                regroups: false,
                transit_facts: TransitFacts::default(),
                number: 0,
                overflow,
                spool: SpoolState::default(),
                leave: false,
                dead: None,
                finished_at: 0,
                requested_flushes: VecDeque::new(),
                closing: None,
                thread_runs: false,
                usual: (0, 0),
                unsynced: UnsyncedBatches::default(),
                error: String::new(),
            }),
            changed: Condvar::new(),
            front_batch: AtomicU64::new(NONE),
            unspilled_batch: AtomicU64::new(NONE),
            overflowing_since: AtomicU64::new(0),
            writing_since: AtomicU64::new(0),
            large_until: AtomicU64::new(0),
            syncing_since: AtomicU64::new(0),
            sync_error: AtomicI32::new(0),
            syncs: Syncs { rule: SyncRule::Asked, pending_sync: None },
            error_number: AtomicI32::new(0),
            notify: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            lost_descriptor: AtomicBool::new(false),
            has_unreadable: AtomicBool::new(false),
            timed_out: AtomicBool::new(false),
            meters: SinkMeters::default(),
            flushed_ticket: AtomicU64::new(0),
            rotation_count: first.rotation_count.clone(),
            lateness: Lateness::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, OutletState> {
        // Ignore poison: a panicking writer leaves counters and queue in a state that occurs between two statements of
        // this file.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn head(&self) -> &SinkHead {
        self.segment.sink(Table::Sinks.slot(self.id))
    }
}

impl std::fmt::Debug for Outlet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outlet").field("id", &self.id).field("definition", &self.definition).finish()
    }
}
