//! Groups records whose messages and tracebacks are alike except for numbers, ids and quoted parts.

use std::collections::HashMap;
use std::sync::Arc;

use super::item::Item;
use super::memory::StepContext;
use super::step::{RunningStep, StepFlow};
use crate::query::{Field, FieldValues, QueryError};
use crate::record_id::RecordId;
use crate::value::Value;

/// Maximum number of patterns.
const MAX_PATTERNS: usize = 10_000;

/// Maximum bytes of a pattern and of an example.
const MAX_TEXT: usize = 1_000;

/// Bytes of a pattern besides its texts.
const PATTERN_BYTES: usize = 256;

/// The patterns until now.
pub(super) struct PatternsStep {
    /// Patterns of records before this time are left out.
    new_since_ns: Option<i64>,
    patterns: HashMap<String, FoundPattern>,
}

struct FoundPattern {
    count: i64,
    first: Option<i64>,
    last: Option<i64>,
    pattern: String,
    example: String,
    id: String,
    is_old: bool,
}

impl PatternsStep {
    pub fn new(new_since_ns: Option<i64>) -> Self {
        Self { new_since_ns, patterns: HashMap::new() }
    }
}

/// The text that is shown for a pattern, and the text that identifies it.
fn pattern_of(row: &Item) -> (String, String) {
    let Some(exception) = row.text(&Field::Exception).filter(|text| !text.trim().is_empty()) else {
        let pattern = alike(row.text(&Field::Message).unwrap_or_default());
        return (pattern.clone(), pattern);
    };
    // Frames and the last line of a traceback of Python; the source lines between them follow from the frames.
    let lines = || exception.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = alike(lines().next_back().unwrap_or_default());
    let frames: Vec<_> = lines().filter(|line| line.starts_with("File ")).map(frame).collect();
    let place = frames.last().map(|frame| format!(" ({frame})")).unwrap_or_default();
    (format!("{last}{place}"), format!("{last}\n{}", frames.join("\n")))
}

/// A frame of a traceback without the number of its line.
fn frame(line: &str) -> String {
    let mut parts = line.split(", ");
    let file = parts.next().unwrap_or_default();
    let function = parts.find(|part| part.starts_with("in ")).unwrap_or_default();
    format!("{file}, {function}")
}

/// The text with its changing parts replaced: `<*>` for words with digits, `'<*>'` for quoted parts.
fn alike(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    let mut is_word_before = false;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        if matches!(first, '\'' | '"')
            && !is_word_before
            && let Some(end) = after.find(first)
            && !after[..end].contains('\n')
        {
            result.push(first);
            result.push_str("<*>");
            result.push(first);
            rest = &after[end + first.len_utf8()..];
            is_word_before = false;
            continue;
        }
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        if is_word(first) {
            // Ids as 0a1b-2c3d and numbers as 1.5 are one word.
            let end = rest.char_indices().find(|(at, character)| {
                let next = rest[at + character.len_utf8()..].chars().next();
                !(is_word(*character) || "-.:".contains(*character) && next.is_some_and(is_word))
            });
            let (word, following) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
            result.push_str(if word.contains(|c: char| c.is_ascii_digit()) { "<*>" } else { word });
            rest = following;
            is_word_before = true;
        } else {
            result.push(first);
            rest = after;
            is_word_before = false;
        }
    }
    shortened(result)
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

impl RunningStep for PatternsStep {
    fn take(&mut self, row: Item, _: &mut Vec<Item>, context: &mut StepContext) -> Result<StepFlow, QueryError> {
        let (pattern, key) = pattern_of(&row);
        let time = row.time_ns();
        let is_old = self.new_since_ns.zip(time).is_some_and(|(since, time)| time < since);
        if let Some(found) = self.patterns.get_mut(&key) {
            found.is_old |= is_old;
            found.count += 1;
            found.first = found.first.into_iter().chain(time).min();
            found.last = found.last.max(time);
            return Ok(StepFlow::Continue);
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(
                context.error(format!("more than {MAX_PATTERNS} patterns: use a filter, or a shorter time range"))
            );
        }
        let example = shortened(row.text(&Field::Message).unwrap_or_default().to_owned());
        let id = match &row {
            Item::Record(record) => RecordId::of(record).to_string(),
            Item::Row(_) => String::new(),
        };
        context.take(PATTERN_BYTES + key.len() + pattern.len() + example.len(), "use a shorter time range")?;
        self.patterns.insert(key, FoundPattern { count: 1, first: time, last: time, pattern, example, id, is_old });
        Ok(StepFlow::Continue)
    }

    fn finish(&mut self, to: &mut Vec<Item>, _: &mut StepContext) -> Result<(), QueryError> {
        let mut patterns: Vec<_> = self.patterns.drain().map(|(_, pattern)| pattern).collect();
        patterns.retain(|pattern| !pattern.is_old);
        patterns.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.pattern.cmp(&two.pattern)));
        let names: [Arc<str>; 6] = PATTERN_COLUMNS.map(Arc::from);
        let time = |time: Option<i64>| time.map_or(Value::Null, Value::Int);
        to.extend(patterns.into_iter().map(|found| {
            let values = [
                Value::Int(found.count),
                time(found.first),
                time(found.last),
                Value::text(found.pattern),
                Value::text(found.example),
                Value::text(found.id),
            ];
            Item::Row(names.iter().cloned().zip(values).collect())
        }));
        Ok(())
    }
}

/// The columns of patterns.
const PATTERN_COLUMNS: [&str; 6] = ["count", "first", "last", "pattern", "example", "id"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;

    #[test]
    fn numbers_ids_and_quoted_parts_do_not_count() {
        for (expected, text) in [
            ("paid <*> of <*>", "paid 12 of 17.5"),
            ("user '<*>' unknown", "user 'a b' unknown"),
            ("KeyError: '<*>'", "KeyError: 'x'"),
            ("id <*>, done", "id 0a1b-77-cc, done"),
            ("don't 'stop", "don't 'stop"),
            ("at <*> a.b", "at 10:00:05 a.b"),
            ("größe 商品", "größe 商品"),
        ] {
            assert_eq!(expected, alike(text));
        }
        assert!(alike(&"ü".repeat(2_000)).len() < MAX_TEXT + 10);
    }

    #[test]
    fn a_traceback_counts_by_its_frames_and_its_last_line() {
        let traceback = |line: u32, function: &str| {
            let text =
                format!("Traceback:\n  File \"/a.py\", line {line}, in {function}\n    x['k']\nKeyError: 'k{line}'");
            let record = Record { message: line.to_string().into(), exception: Some(text.into()), ..Record::default() };
            pattern_of(&Item::Record(Box::new(record)))
        };

        assert_eq!("KeyError: '<*>' (File \"/a.py\", in f)", traceback(5, "f").0);
        assert_eq!(traceback(5, "f").1, traceback(6, "f").1);
        assert_ne!(traceback(5, "f").1, traceback(5, "g").1);
    }
}
