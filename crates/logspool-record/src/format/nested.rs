//! Extra fields in nested objects: `ecs_logging`.
//!
//! Pipeline stage: format (see ARCHITECTURE.md). The keys of each object are sorted, so the members of the layout and the
//! extra fields are sorted together by the keys that lead to them. Capture sends no two fields with the same keys, and
//! none whose keys lead to a value and to an object.

use super::object_members::{Assignment, Held, Source};
use super::view::ParsedRecord;

/// The nested objects of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NestedMembers {
    /// Number of assignments before the nested objects.
    front: usize,
    members: Box<[NestedMember]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NestedMember {
    /// The keys of the objects that contain the member.
    parents: Box<[Box<str>]>,
    /// The index of its assignment.
    index: usize,
}

/// One value in nested objects.
pub(super) struct Leaf<'l> {
    /// The keys of the objects that contain the value, the outermost one first.
    pub(super) parents: Vec<&'l str>,
    pub(super) key: &'l str,
    pub(super) held: Held<'l>,
}

impl NestedMembers {
    /// Finds the members after [`Source::NestedExtras`]; `None` if there is no such assignment.
    pub(super) fn of(assignments: &[Assignment]) -> Option<Self> {
        let front = assignments.iter().position(|member| member.source == Source::NestedExtras)?;
        let mut open: Vec<Box<str>> = Vec::new();
        let mut members = Vec::new();
        for (index, member) in assignments.iter().enumerate().skip(front + 1) {
            match member.source {
                Source::Open => open.push(member.key.clone()),
                Source::Close => drop(open.pop()),
                _ => members.push(NestedMember { parents: open.as_slice().into(), index }),
            }
        }
        Some(Self { front, members: members.into() })
    }

    /// Number of assignments before the nested objects.
    pub(super) fn front(&self) -> usize {
        self.front
    }

    /// The members and the extra fields of a record, sorted by their keys.
    pub(super) fn leaves<'l>(&'l self, assignments: &'l [Assignment], record: &ParsedRecord<'l>) -> Vec<Leaf<'l>> {
        let member = |nested: &'l NestedMember| {
            let member = &assignments[nested.index];
            let parents = nested.parents.iter().map(|key| &**key).collect();
            Leaf { parents, key: &member.key, held: Held::Source(&member.source) }
        };
        let mut leaves: Vec<Leaf<'l>> = self.members.iter().map(member).collect();
        leaves.extend(record.fields().map(|(name, value)| {
            let mut parents: Vec<&str> = name.split('.').collect();
            let key = parents.pop().unwrap_or_default();
            Leaf { parents, key, held: Held::Added(value) }
        }));
        leaves.sort_by(|one, other| one.keys().cmp(other.keys()));
        leaves
    }
}

impl<'l> Leaf<'l> {
    fn keys(&self) -> impl Iterator<Item = &'l str> {
        self.parents.iter().copied().chain([self.key])
    }
}
