//! The description of a line that `json.dumps` makes of a dict.
//!
//! A formatter of this kind assigns keys one after the other, and a later assignment to the same key replaces the
//! value but not the place of the key. The description lists the assignments in the formatter's order.

use super::codec_items::{boolean, number, optional, optional_text, pairs, text, texts, tuple};
use super::styled_spec::NumberTexts;
use crate::record::{Encoder, Values};

/// The value that an assignment gives to its key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AssignedValue {
    /// An attribute of the record; `null` if the record does not have it.
    Attribute(String),
    /// A constant, as JSON text.
    Constant(String),
    /// The text of the exception. Nothing is assigned if the record has no exception.
    Exception(TextShape),
    /// The text of the stack. Nothing is assigned if the record has no stack.
    Stack(TextShape),
    /// `datetime.fromtimestamp(record.created, utc).isoformat()`.
    Timestamp,
    /// `null`, if the object does not have the key yet.
    NullIfAbsent,
    /// The text of the level.
    Level(NumberTexts),
    /// An object, whose members are the following assignments up to [`AssignedValue::Close`].
    Open,
    /// The end of an object. The key of the assignment is not used.
    Close,
    /// The assignments after this one make objects whose keys are sorted, and every extra field is added to them: a dot
    /// in its name separates the keys of nested objects. [`ObjectSpec::hidden`] then names fields together with all
    /// fields below them. The key of the assignment is not used.
    NestedExtras,
    /// Every item of a message that is a dict. The key of the assignment is not used.
    MessageItems,
    /// Every extra field that [`ObjectSpec::hidden`] and [`ObjectSpec::hides_private`] leave over, in the order of the
    /// record. The key of the assignment is not used.
    Extras,
}

/// How a text of several lines is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextShape {
    /// One string.
    Whole,
    /// A list of its lines, as `str.splitlines` finds them.
    Lines,
}

/// The description of one line.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ObjectSpec {
    /// Text before the object.
    pub prefix: String,
    /// Whether text is written with `ensure_ascii`.
    pub ascii: bool,
    /// Whether there are no spaces after commas and colons.
    pub compact: bool,
    /// Whether a record with an exception or a stack does not take the native path.
    pub own_exceptions: bool,
    /// Keys and values, in the order in which the formatter assigns them.
    pub assignments: Vec<(String, AssignedValue)>,
    /// Names of extra fields that are not shown.
    pub hidden: Vec<String>,
    /// Whether extra fields are not shown if their names begin with an underscore.
    pub hides_private: bool,
    /// Extra fields and items of the message that are shown under another key.
    pub renamed: Vec<(String, String)>,
}

impl ObjectSpec {
    /// Whether an extra field of this name is shown by [`AssignedValue::Extras`].
    pub fn shows_extra(&self, name: &str) -> bool {
        let is_hidden = self.hides_private && name.starts_with('_') || self.hidden.iter().any(|hidden| hidden == name);
        !is_hidden
    }

    /// The key under which an extra field is shown.
    pub fn key_of_extra<'a>(&'a self, name: &'a str) -> &'a str {
        self.renamed.iter().find(|(from, _)| from == name).map_or(name, |(_, to)| to)
    }

    /// The places of the nested members, each as the keys that lead to it. `None` if extra fields are not nested.
    pub fn nested_paths(&self) -> Option<Vec<Vec<String>>> {
        let marker = self.assignments.iter().position(|(_, assigned)| *assigned == AssignedValue::NestedExtras)?;
        let (front, sorted) = self.assignments.split_at(marker);
        let mut paths: Vec<Vec<String>> =
            front.iter().map(|(key, _)| key.split('.').map(str::to_owned).collect()).collect();
        let mut open: Vec<String> = Vec::new();
        for (key, assigned) in &sorted[1..] {
            match assigned {
                AssignedValue::Open => open.push(key.clone()),
                AssignedValue::Close => drop(open.pop()),
                _ => paths.push(open.iter().chain([key]).cloned().collect()),
            }
        }
        Some(paths)
    }

    pub(super) fn encode(&self, kind: i64, encoder: &mut Encoder) {
        encoder.tuple(9).int(kind).str(&self.prefix).bool(self.ascii).bool(self.hides_private);
        encoder.bool(self.compact).bool(self.own_exceptions);
        let levels =
            self.assignments.iter().filter(|(_, assigned)| matches!(assigned, AssignedValue::Level(_))).count();
        encoder.tuple((3 * self.assignments.len() + 2 * levels) as u32);
        for (key, assigned) in &self.assignments {
            let (kind, detail) = assigned.parts();
            encoder.str(key).int(kind);
            optional(encoder, detail);
            if let AssignedValue::Level(texts) = assigned {
                texts.encode(encoder);
            }
        }
        encoder.tuple(self.hidden.len() as u32);
        for name in &self.hidden {
            encoder.str(name);
        }
        encoder.tuple(2 * self.renamed.len() as u32);
        for (from, to) in &self.renamed {
            encoder.str(from).str(to);
        }
    }

    /// Decodes what [`ObjectSpec::encode`] wrote after the kind.
    pub(super) fn decode(mut items: Values<'_>) -> Option<Self> {
        let (prefix, ascii, hides_private) = (text(&mut items)?, boolean(&mut items)?, boolean(&mut items)?);
        let (compact, own_exceptions) = (boolean(&mut items)?, boolean(&mut items)?);
        let assignments = pairs(tuple(&mut items)?, text, assigned)?;
        let hidden = texts(tuple(&mut items)?)?;
        let renamed = pairs(tuple(&mut items)?, text, text)?;
        let spec = Self { prefix, ascii, compact, own_exceptions, assignments, hidden, hides_private, renamed };
        items.rest().is_empty().then_some(spec)
    }
}

impl AssignedValue {
    fn parts(&self) -> (i64, Option<&str>) {
        match self {
            Self::Attribute(name) => (0, Some(name)),
            Self::Constant(json) => (1, Some(json)),
            Self::Exception(TextShape::Whole) => (2, None),
            Self::Exception(TextShape::Lines) => (3, None),
            Self::Stack(TextShape::Whole) => (4, None),
            Self::Stack(TextShape::Lines) => (5, None),
            Self::Timestamp => (6, None),
            Self::NullIfAbsent => (7, None),
            Self::Extras => (8, None),
            Self::Open => (9, None),
            Self::Close => (10, None),
            Self::NestedExtras => (11, None),
            Self::Level(_) => (12, None),
            Self::MessageItems => (13, None),
        }
    }
}

fn assigned(items: &mut Values<'_>) -> Option<AssignedValue> {
    let kind = number::<u8>(items)?;
    Some(match (kind, optional_text(items)?) {
        (0, Some(name)) => AssignedValue::Attribute(name),
        (1, Some(json)) => AssignedValue::Constant(json),
        (2, None) => AssignedValue::Exception(TextShape::Whole),
        (3, None) => AssignedValue::Exception(TextShape::Lines),
        (4, None) => AssignedValue::Stack(TextShape::Whole),
        (5, None) => AssignedValue::Stack(TextShape::Lines),
        (6, None) => AssignedValue::Timestamp,
        (7, None) => AssignedValue::NullIfAbsent,
        (8, None) => AssignedValue::Extras,
        (9, None) => AssignedValue::Open,
        (10, None) => AssignedValue::Close,
        (11, None) => AssignedValue::NestedExtras,
        (12, None) => AssignedValue::Level(NumberTexts::decode(items)?),
        (13, None) => AssignedValue::MessageItems,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_fields_are_hidden_and_renamed_by_name() {
        let spec = ObjectSpec {
            hidden: vec!["request".to_owned()],
            hides_private: true,
            renamed: vec![("user".to_owned(), "user.name".to_owned())],
            ..ObjectSpec::default()
        };

        assert!(spec.shows_extra("user") && spec.shows_extra("requests"));
        assert!(!spec.shows_extra("_user") && !spec.shows_extra("request"));
        assert_eq!(["user.name", "id"], [spec.key_of_extra("user"), spec.key_of_extra("id")]);
    }

    #[test]
    fn nested_paths_are_the_keys_that_lead_to_each_member() {
        let assignment = |key: &str, assigned| (key.to_owned(), assigned);
        let mut spec = ObjectSpec {
            assignments: vec![
                assignment("log.level", AssignedValue::Timestamp),
                assignment("", AssignedValue::NestedExtras),
                assignment("ecs.version", AssignedValue::Timestamp),
                assignment("log", AssignedValue::Open),
                assignment("logger", AssignedValue::Timestamp),
                assignment("", AssignedValue::Close),
                assignment("z", AssignedValue::Timestamp),
            ],
            ..ObjectSpec::default()
        };
        let paths: [&[&str]; 4] = [&["log", "level"], &["ecs.version"], &["log", "logger"], &["z"]];

        assert_eq!(
            Some(paths.map(|path| path.iter().map(|key| (*key).to_owned()).collect()).to_vec()),
            spec.nested_paths()
        );
        spec.assignments.remove(1);
        assert_eq!(None, spec.nested_paths());
    }
}
