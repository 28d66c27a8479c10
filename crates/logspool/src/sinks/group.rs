//! A group of sinks that one writer writes: all sinks of a process that write to one file, pipe or terminal.
//!
//! Sinks with a queue and a writer of their own would write the lines of one thread in another order than that of its
//! calls. So the group has one queue, one writer thread and one checkpoint. Each record names the member that writes
//! it ([`Mark::member`](crate::sink::Mark)). Each member has its own descriptor and decides by its own rules when to
//! rotate. After a rotation the members may write to different files, as with stock logging.
//!
//! A member joins when its handler is opened, and leaves when its handler is closed. The writer follows such a change
//! before its next write.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logspool_record::definition::SinkDefinition;

use super::{SinkPlace, place};
use crate::sink::{Lines, Origin, SharedLog, Sink, SinkError, SyncError};

/// What a member shows to the threads that open and close handlers.
#[derive(Debug)]
pub struct MemberState {
    /// Number of times that the member has switched to another file.
    pub rotation_count: Arc<AtomicU64>,
    place: Mutex<Option<SinkPlace>>,
}

impl MemberState {
    /// The state of a member that writes to `place`.
    pub fn new(place: Option<SinkPlace>) -> Self {
        Self { rotation_count: Arc::default(), place: Mutex::new(place) }
    }

    /// The file to which the member writes.
    pub fn place(&self) -> Option<SinkPlace> {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink of a group.
pub struct GroupMember {
    sink: Box<dyn Sink>,
    path: Option<PathBuf>,
    state: Arc<MemberState>,
}

impl GroupMember {
    /// A member for the sink of a definition.
    pub fn new(definition: &SinkDefinition, sink: Box<dyn Sink>, state: Arc<MemberState>) -> Self {
        Self { sink, path: place(definition).path().map(PathBuf::from), state }
    }

    /// Notes that the member has switched to another file.
    fn note_rotations(&self) {
        let count = self.sink.rotation_count();
        if self.state.rotation_count.load(Ordering::Relaxed) != count {
            let now = self.path.as_deref().and_then(SinkPlace::at);
            *self.state.place.lock().unwrap_or_else(PoisonError::into_inner) = now;
            self.state.rotation_count.store(count, Ordering::Relaxed);
        }
    }
}

/// The changes that the writer has not followed yet: for each, the index of a member, and the member if it joins.
#[derive(Default)]
pub struct GroupChanges(Mutex<Vec<(usize, Option<GroupMember>)>>);

impl GroupChanges {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, Option<GroupMember>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a member. Call it before any record names `index`.
    pub fn join(&self, index: usize, member: GroupMember) {
        self.lock().push((index, Some(member)));
    }

    /// Removes a member. Call it after all its records are written.
    pub fn leave(&self, index: usize) {
        self.lock().push((index, None));
    }

    /// Drops all changes, because the group is closed.
    pub fn clear(&self) {
        let changes = std::mem::take(&mut *self.lock());
        drop(changes);
    }
}

impl std::fmt::Debug for GroupChanges {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GroupChanges").finish_non_exhaustive()
    }
}

/// The sink of a group; see the module documentation.
pub struct GroupSink {
    members: Vec<Option<GroupMember>>,
    changes: Arc<GroupChanges>,
    /// Index of the member that wrote last.
    current: usize,
    /// Arguments of the last [`SharedLog::begin`].
    begun: (u64, u64),
    keeps_unsynced: bool,
}

impl GroupSink {
    /// A group with one member.
    pub fn new(first: GroupMember, changes: Arc<GroupChanges>) -> Self {
        Self { members: vec![Some(first)], changes, current: 0, begun: (0, 0), keeps_unsynced: false }
    }

    /// The records at the start of `lines` that one member writes, and its index.
    fn run<'a>(&self, lines: &Lines<'a>) -> (usize, Lines<'a>) {
        let first = lines.marks.first().map_or(0, |mark| mark.member);
        let others = |lines: &Lines<'a>| lines.marks.iter().position(|mark| mark.member != first);
        match if self.members.len() > 1 { others(lines) } else { None } {
            Some(count) => {
                let end = lines.marks[count - 1].end as usize - lines.before;
                let (bytes, marks) = (&lines.bytes[..end], &lines.marks[..count]);
                (usize::from(first), Lines { bytes, marks, before: lines.before })
            }
            None => (usize::from(first), *lines),
        }
    }

    fn member(&mut self, index: usize) -> Option<&mut GroupMember> {
        self.members.get_mut(index)?.as_mut()
    }

    fn open_members(&mut self) -> impl Iterator<Item = &mut GroupMember> {
        self.members.iter_mut().flatten()
    }

    fn current_log(&mut self) -> Option<&mut dyn SharedLog> {
        self.member(self.current)?.sink.shared()
    }
}

impl Sink for GroupSink {
    fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
        self.follow_members();
        let (index, lines) = self.run(&lines);
        self.current = index;
        let Some(member) = self.member(index) else {
            return Err(SinkError::Fatal(io::Error::from_raw_os_error(libc::EBADF)));
        };
        let written = member.sink.write(lines);
        member.note_rotations();
        written
    }

    fn sync(&mut self) -> Result<(), SyncError> {
        let mut outcome = Ok(());
        for member in self.open_members() {
            outcome = outcome.and(member.sink.sync());
        }
        outcome
    }

    fn keep_unsynced(&mut self) {
        self.keeps_unsynced = true;
        self.open_members().for_each(|member| member.sink.keep_unsynced());
    }

    fn release_closed_descriptors(&mut self) -> bool {
        let mut again = false;
        for member in self.open_members() {
            again |= member.sink.release_closed_descriptors();
        }
        again
    }

    fn follow_members(&mut self) {
        let changes = std::mem::take(&mut *self.changes.lock());
        for (index, mut member) in changes {
            if let Some(member) = &mut member {
                if let Some(log) = member.sink.shared() {
                    log.begin(self.begun.0, self.begun.1);
                }
                if self.keeps_unsynced {
                    member.sink.keep_unsynced();
                }
            }
            if self.members.len() <= index {
                self.members.resize_with(index + 1, || None);
            }
            self.members[index] = member;
        }
    }

    fn give_up(&mut self, lines: &Lines<'_>) -> Option<usize> {
        let others = self.open_members().count() - usize::from(self.member(self.current).is_some());
        (others > 0).then(|| self.run(lines).1.bytes.len())
    }

    fn rotation_count(&self) -> u64 {
        self.members[0].as_ref().map_or(0, |member| member.sink.rotation_count())
    }

    fn cut_count(&self) -> u64 {
        self.members.iter().flatten().map(|member| member.sink.cut_count()).sum()
    }

    fn trouble(&mut self) -> Option<io::Error> {
        self.open_members().find_map(|member| member.sink.trouble())
    }

    fn shared(&mut self) -> Option<&mut dyn SharedLog> {
        Some(self)
    }
}

impl SharedLog for GroupSink {
    fn set_origin(&mut self, origin: Origin) {
        if let Some(log) = self.current_log() {
            log.set_origin(origin);
        }
    }

    fn begin(&mut self, batch: u64, base: u64) {
        self.begun = (batch, base);
        for member in self.open_members() {
            if let Some(log) = member.sink.shared() {
                log.begin(batch, base);
            }
        }
    }

    fn finish_append(&mut self) {
        if let Some(log) = self.current_log() {
            log.finish_append();
        }
    }

    fn abort_append(&mut self) {
        if let Some(log) = self.current_log() {
            log.abort_append();
        }
    }
}

#[cfg(test)]
mod tests {
    use logspool_record::definition::Descriptor;

    use super::*;
    use crate::sink::Mark;
    use crate::sinks::{FileOptions, SinkOptions, open};

    fn member(path: &str) -> GroupMember {
        let definition = FileOptions { path: path.to_owned() }.define(Descriptor::Open);
        GroupMember::new(&definition, open(&definition).unwrap(), Arc::new(MemberState::new(None)))
    }

    #[test]
    fn each_record_is_written_by_its_member_and_a_closed_member_stops_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let changes = Arc::new(GroupChanges::default());
        let mut group = GroupSink::new(member(&path("first")), changes.clone());
        changes.join(1, member(&path("second")));
        let members = [0, 0, 1, 0, 1, 1];
        let marks: Vec<Mark> = (1..)
            .zip(members)
            .map(|(number, member)| Mark { end: 2 * number, level: 20, class: 2, member, seconds: 0 })
            .collect();
        let bytes = b"a\nb\nc\nd\ne\nf\n";
        let mut before = 0;
        let mut given_up = Vec::new();
        while before < bytes.len() {
            if before == 6 {
                changes.leave(1);
            }
            let left = &marks[before / 2..];
            let lines = Lines { bytes: &bytes[before..], marks: left, before };
            before += match group.write(lines) {
                Ok(count) => count,
                Err(SinkError::Fatal(_)) => {
                    let count = group.give_up(&lines).expect("the first member is open");
                    given_up.extend_from_slice(&bytes[before..before + count]);
                    count
                }
                Err(error) => panic!("{error:?}"),
            };
        }

        assert_eq!("a\nb\nd\n", std::fs::read_to_string(path("first")).unwrap());
        assert_eq!("c\n", std::fs::read_to_string(path("second")).unwrap());
        assert_eq!(b"e\nf\n", &given_up[..]);
        changes.leave(0);
        group.follow_members();
        let lines = Lines { bytes, marks: &marks, before: 0 };
        assert!(group.write(lines).is_err() && group.give_up(&lines).is_none());
    }
}
