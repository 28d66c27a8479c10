//! The members of an outlet: the handlers that share one member of its group, and the other members.
//!
//! Each member has an id in the sink table. The first has the id of the outlet; see `sinks/group.rs` for the rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logspool_record::definition::SinkDefinition;

use crate::sink::Sink;
use crate::sinks::{self, GroupChanges, GroupMember, MemberState, SinkPlace};

/// A member of an outlet.
#[derive(Debug)]
pub(super) struct MemberEntry {
    pub(super) id: u32,
    pub(super) definition: SinkDefinition,
    pub(super) users: u32,
    pub(super) state: Arc<MemberState>,
    /// Ticket of the flush after which no record names the member any more. Set when its last user has left.
    pub(super) closing: Option<u64>,
}

/// The members of an outlet, by index.
#[derive(Debug)]
pub(super) struct Members {
    entries: Mutex<Vec<Option<MemberEntry>>>,
    /// `None`: the sink is not a group.
    pub(super) changes: Option<Arc<GroupChanges>>,
}

impl Members {
    /// The members of a new outlet. A sink that writes to a `place` becomes the first member of a group.
    pub(super) fn new(
        id: u32,
        definition: &SinkDefinition,
        place: Option<SinkPlace>,
        sink: Box<dyn Sink>,
    ) -> (Self, Arc<MemberState>, Box<dyn Sink>) {
        let state = Arc::new(MemberState::new(place));
        let entry = MemberEntry { id, definition: definition.clone(), users: 1, state: state.clone(), closing: None };
        let changes = place.map(|_| Arc::<GroupChanges>::default());
        let sink = match &changes {
            Some(changes) => {
                let first = GroupMember::new(definition, sink, state.clone());
                Box::new(sinks::GroupSink::new(first, changes.clone()))
            }
            None => sink,
        };
        (Self { entries: Mutex::new(vec![Some(entry)]), changes }, state, sink)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Option<MemberEntry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the members that the writer has not taken in yet, because the sink is closed.
    pub(super) fn drop_changes(&self) {
        if let Some(changes) = &self.changes {
            changes.clear();
        }
    }
}
