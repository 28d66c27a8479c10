//! Handlers that join an outlet and leave it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use logspool_record::definition::{Descriptor, SinkDefinition};
use logspool_sys::published::Published;

use super::members::MemberEntry;
use super::outlet::Outlet;
use crate::sink::Sink;
use crate::sinks::{self, GroupMember, MemberState, SinkPlace};

/// What is left after a handler was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// Other handlers use the same member.
    Shared,
    /// It was the last handler of its member. The outlet has other members.
    Member,
    /// It was the last handler of the outlet.
    Last,
}

/// Whether a member writes to the file, or has the path, of `definition`.
fn is_at(entry: &MemberEntry, definition: &SinkDefinition, place: Option<SinkPlace>) -> bool {
    let destination = sinks::place(definition);
    place.is_some() && entry.state.place() == place
        || destination.path().is_some() && sinks::place(&entry.definition) == destination
}

impl Outlet {
    /// Index of the member with this id.
    pub fn member(&self, id: u32) -> Option<u8> {
        let is_it = |entry: &Option<MemberEntry>| entry.as_ref().is_some_and(|entry| entry.id == id);
        self.members.lock().iter().position(is_it).and_then(|index| u8::try_from(index).ok())
    }

    /// State of the member with this id.
    pub fn member_state(&self, id: u32) -> Option<Arc<MemberState>> {
        let entries = self.members.lock();
        entries.iter().flatten().find(|entry| entry.id == id).map(|entry| entry.state.clone())
    }

    /// Whether a member writes to this file.
    pub fn writes_to(&self, place: SinkPlace) -> bool {
        let is_open = |entry: &&MemberEntry| entry.users > 0;
        self.members.lock().iter().flatten().filter(is_open).any(|entry| entry.state.place() == Some(place))
    }

    /// Adds a handler to the member whose options and file are those of `definition`, and returns its id. `None`: there
    /// is no such member, or the outlet is being closed.
    pub fn share(&self, definition: &SinkDefinition, place: SinkPlace) -> Option<u32> {
        if !self.traits.is_shared || sinks::place(definition).path().is_some() && is_opened_by_path(definition) {
            return None;
        }
        let mut entries = self.members.lock();
        let same = entries.iter_mut().flatten().find(|entry| {
            entry.users > 0
                && sinks::traits(&entry.definition).is_shared
                && entry.state.place() == Some(place)
                && entry.definition.is_alike(definition)
        })?;
        if !self.add_user() {
            return None;
        }
        same.users += 1;
        Some(same.id)
    }

    /// Whether a sink of `definition` belongs to this group: a member writes to the same file or has the same path.
    pub fn is_for(&self, definition: &SinkDefinition, place: Option<SinkPlace>) -> bool {
        let traits = sinks::traits(definition);
        let is_of_kind = self.members.changes.is_some()
            && traits.may_be_member()
            && traits.is_borrowed == self.traits.is_borrowed
            && sinks::is_borrowed(definition) == self.is_lent;
        let is_same = |entry: &MemberEntry| entry.users > 0 && is_at(entry, definition, place);
        is_of_kind && self.members.lock().iter().flatten().any(is_same)
    }

    /// Whether the sink is closing, and its writer still writes to the file of `definition`.
    pub fn is_leaving(&self, definition: &SinkDefinition, place: Option<SinkPlace>) -> bool {
        self.is_closing() && self.members.lock().iter().flatten().any(|entry| is_at(entry, definition, place))
    }

    /// Adds a member, after [`Outlet::add_user`].
    pub fn join(&self, id: u32, definition: &SinkDefinition, place: Option<SinkPlace>, sink: Box<dyn Sink>) {
        let Some(changes) = &self.members.changes else { return };
        let state = Arc::new(MemberState::new(place));
        let member = GroupMember::new(definition, sink, state.clone());
        let entry = MemberEntry { id, definition: definition.clone(), users: 1, state, closing: None };
        let mut entries = self.members.lock();
        let index = entries.iter().position(Option::is_none).unwrap_or(entries.len());
        // Before the entry: the first record that names the index comes after the entry is found.
        changes.join(index, member);
        if index == entries.len() {
            entries.push(None);
        }
        entries[index] = Some(entry);
    }

    /// Removes a handler of the member with this id. No record names the member after flush `ticket`.
    pub fn leave(&self, id: u32, ticket: u64) -> Departure {
        let mut entries = self.members.lock();
        let is_last = self.remove_user();
        let entry = entries.iter_mut().flatten().find(|entry| entry.id == id);
        let left = entry.map_or(0, |entry| {
            entry.users = entry.users.saturating_sub(1);
            if entry.users == 0 {
                entry.closing = Some(ticket);
            }
            entry.users
        });
        match (is_last, left) {
            (true, _) => Departure::Last,
            (false, 0) => Departure::Member,
            (false, _) => Departure::Shared,
        }
    }

    /// Lets the writer close the descriptor of a member all of whose records are written.
    pub fn drop_member(&self, id: u32) {
        if let (Some(changes), Some(index)) = (&self.members.changes, self.member(id)) {
            changes.leave(usize::from(index));
            self.regroup();
        }
    }

    /// Makes the writer follow changes of the group soon.
    fn regroup(&self) {
        let mut state = self.lock();
        if state.thread_runs {
            state.regroups = true;
            drop(state);
            self.changed.notify_all();
            return;
        }
        drop(state);
        // A writer that starts meanwhile follows the changes before its first write.
        if let Ok(mut slot) = self.sink.try_lock()
            && let Some(sink) = slot.as_mut()
        {
            sink.follow_members();
        }
    }

    /// Whether records may still name a closed member.
    pub fn has_leaving_members(&self) -> bool {
        let flushed = self.flushed_ticket.observe();
        self.members.lock().iter().flatten().any(|entry| entry.closing.is_some_and(|ticket| ticket > flushed))
    }

    /// Removes a closed member whose id no record names any more, and returns the id. The first member is never
    /// removed.
    pub fn take_unused_member(&self) -> Option<u32> {
        let is_closed = self.closed_at().is_some();
        let flushed = self.flushed_ticket.observe();
        let mut entries = self.members.lock();
        let is_unused = |entry: &MemberEntry| {
            entry.id != self.id && entry.closing.is_some_and(|ticket| is_closed || ticket <= flushed)
        };
        let index = entries.iter().position(|entry| entry.as_ref().is_some_and(is_unused))?;
        let id = entries[index].take().map(|entry| entry.id);
        drop(entries);
        if let Some(changes) = self.members.changes.as_ref().filter(|_| !self.closed.load(Ordering::Relaxed)) {
            changes.leave(index);
        }
        id
    }
}

fn is_opened_by_path(definition: &SinkDefinition) -> bool {
    definition.descriptor == Descriptor::Open
}
