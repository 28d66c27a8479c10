//! Joins the parts of long lines, which containers send as records of their own (`decoders/line_parts.rs`).
//!
//! A line that is not finished is stored in its parts, each with the field [`PARTIAL`]: when the connection or the
//! request ends, after [`MAX_WAIT`], or when there is no more memory for it.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use crate::decoders::line_parts::{line_name, ordinal, remove_fields};
use crate::record::{LinePart, Record};
use crate::value::Value;

/// The field of a part that is stored without the rest of its line.
pub const PARTIAL: &str = "partial";

/// Maximum wait for the next part. Chosen: a container sends the parts of a line at once, unless its program writes the
/// line itself slowly.
pub const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of lines that are open at the same time. Chosen: a collector sends a line of one container after the
/// other, so few lines are open at the end of a message.
const MAX_OPEN_LINES: usize = 64;

/// Maximum bytes of all open lines of a connection. Chosen: the default limit for a record.
const MAX_BYTES: usize = 1 << 20;

/// Size of the parts into which Docker cuts lines of its files.
const DOCKER_PART_BYTES: usize = 16 * 1024;

/// Maximum number of shorter lines without a line end that count as parts of one line.
const MAX_SHORT_PARTS: usize = 16;

/// Bytes of memory that a part takes in addition to its message.
const PART_BYTES: usize = 1024;

/// The open lines of one connection or request.
#[derive(Debug, Default)]
pub struct LineJoiner {
    lines: Vec<OpenLine>,
    bytes: usize,
    /// True if the sender removes all line ends. Then a line of Docker's files is a part only if it is long enough.
    has_no_line_ends: bool,
}

#[derive(Debug)]
struct OpenLine {
    name: String,
    /// Time when the last part arrived.
    since: Instant,
    /// The parts that arrived. Empty if they were stored alone: then further parts are stored alone, too.
    parts: Vec<Record<'static>>,
    /// True if all parts are short lines of Docker's files.
    is_guess: bool,
}

/// What a record becomes.
#[derive(Debug)]
pub enum JoinedLine {
    /// The record is no part of an open line.
    Other,
    /// These records take its place. There are none while the line is open.
    Ready(Vec<Record<'static>>),
}

impl LineJoiner {
    /// True if parts wait for the rest of their line.
    pub fn is_open(&self) -> bool {
        self.bytes > 0
    }

    /// Bytes of memory that the open lines take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a record if it is a part of a line.
    pub fn add(&mut self, record: &Record<'_>, now: Instant) -> JoinedLine {
        let is_short = record.part == LinePart::Unended && record.message.len() < DOCKER_PART_BYTES;
        let is_line = match record.part {
            LinePart::Whole => true,
            LinePart::Last => self.lines.is_empty(),
            LinePart::Unended => is_short && self.has_no_line_ends,
            LinePart::Inner => false,
        };
        if is_line {
            return JoinedLine::Other;
        }
        let name = line_name(record);
        let at = self.lines.iter().position(|line| line.name == name);
        match (at, record.part) {
            (None, LinePart::Last) => JoinedLine::Other,
            (None, _) => JoinedLine::Ready(self.begin(name, record, is_short, now)),
            (Some(at), LinePart::Last) => {
                let line = self.remove(at);
                JoinedLine::Ready(match line.continues_with(record) {
                    true => vec![joined(line.parts, record)],
                    false => line.parts.into_iter().chain([record.clone().into_owned()]).map(marked).collect(),
                })
            }
            (Some(at), _) => JoinedLine::Ready(self.extend(at, record, is_short, now)),
        }
    }

    /// Opens a line with its first part.
    fn begin(&mut self, name: String, record: &Record<'_>, is_guess: bool, now: Instant) -> Vec<Record<'static>> {
        let mut ready = Vec::new();
        if self.lines.len() >= MAX_OPEN_LINES {
            ready.extend(self.remove(0).parts.into_iter().map(marked));
        }
        let mut line = OpenLine { name, since: now, parts: Vec::new(), is_guess };
        let has_room = self.bytes + bytes_of(record) <= MAX_BYTES;
        if has_room && line.is_next(record) {
            self.bytes += bytes_of(record);
            line.parts.push(record.clone().into_owned());
        } else {
            ready.push(marked(record.clone().into_owned()));
        }
        self.lines.push(line);
        ready
    }

    /// Adds a further part to a line.
    fn extend(&mut self, at: usize, record: &Record<'_>, is_short: bool, now: Instant) -> Vec<Record<'static>> {
        let line = &mut self.lines[at];
        let has_room = self.bytes + bytes_of(record) <= MAX_BYTES;
        let is_no_line = line.is_guess && is_short && line.parts.len() >= MAX_SHORT_PARTS;
        if line.continues_with(record) && has_room && !is_no_line {
            line.is_guess &= is_short;
            line.since = now;
            self.bytes += bytes_of(record);
            line.parts.push(record.clone().into_owned());
            return Vec::new();
        }
        let mut ready = self.give_up(at);
        let record = record.clone().into_owned();
        ready.push(if is_no_line { record } else { marked(record) });
        ready
    }

    /// Returns the parts of lines that have waited too long.
    pub fn expire(&mut self, now: Instant) -> Vec<Record<'static>> {
        let is_late = |line: &OpenLine| !line.parts.is_empty() && now.duration_since(line.since) >= MAX_WAIT;
        let mut ready = Vec::new();
        while let Some(at) = self.lines.iter().position(is_late) {
            ready.extend(self.give_up(at));
        }
        ready
    }

    /// Returns the parts of all lines.
    pub fn end(&mut self) -> Vec<Record<'static>> {
        let mut ready = Vec::new();
        while let Some(at) = self.lines.iter().position(|line| !line.parts.is_empty()) {
            ready.extend(self.give_up(at));
        }
        ready
    }

    fn remove(&mut self, at: usize) -> OpenLine {
        let line = self.lines.remove(at);
        self.bytes -= line.bytes();
        line
    }

    /// Returns the parts of a line. Its further parts are not joined.
    fn give_up(&mut self, at: usize) -> Vec<Record<'static>> {
        let line = self.remove(at);
        // Several short lines without an end are no parts: something has removed all line ends.
        if line.is_guess && line.parts.len() > 1 {
            self.has_no_line_ends = true;
            return line.parts;
        }
        if !line.is_guess {
            self.lines.push(line.given_up());
        }
        line.parts.into_iter().map(marked).collect()
    }
}

impl OpenLine {
    fn bytes(&self) -> usize {
        self.parts.iter().map(bytes_of).sum()
    }

    /// True if the record has the number of the next part, or none.
    fn is_next(&self, record: &Record<'_>) -> bool {
        ordinal(record).is_none_or(|number| number == self.parts.len() + 1)
    }

    /// True if the record belongs behind the parts.
    fn continues_with(&self, record: &Record<'_>) -> bool {
        !self.parts.is_empty() && self.is_next(record)
    }

    /// The line without its parts.
    fn given_up(&self) -> Self {
        Self { name: self.name.clone(), since: self.since, parts: Vec::new(), is_guess: self.is_guess }
    }
}

fn bytes_of(record: &Record<'_>) -> usize {
    record.message.len() + PART_BYTES
}

fn joined(parts: Vec<Record<'static>>, last: &Record<'_>) -> Record<'static> {
    let message: String = parts.iter().chain([last]).map(|part| &*part.message).collect();
    let mut line = parts.into_iter().next().unwrap_or_default();
    line.message = Cow::Owned(message);
    remove_fields(&mut line);
    line
}

/// The record, marked as a part of a line.
fn marked(mut record: Record<'static>) -> Record<'static> {
    record.fields.push((Cow::Borrowed(PARTIAL), Value::Bool(true)));
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoders::json_line;

    /// The messages of the records that lines become. An asterisk marks a part that is stored alone.
    fn read(joiner: &mut LineJoiner, lines: &[String]) -> Vec<String> {
        let mut records = Vec::new();
        for line in lines {
            let record = json_line::read(line.as_bytes()).unwrap();
            match joiner.add(&record, Instant::now()) {
                JoinedLine::Other => records.push(record.into_owned()),
                JoinedLine::Ready(ready) => records.extend(ready),
            }
        }
        texts(&records)
    }

    fn texts(records: &[Record<'_>]) -> Vec<String> {
        let mark = |record: &Record<'_>| record.fields.iter().any(|(name, _)| name == PARTIAL);
        records.iter().map(|record| format!("{}{}", record.message, if mark(record) { "*" } else { "" })).collect()
    }

    fn cri(tag: &str, stream: &str, text: &str) -> String {
        format!(r#"{{"time":"2026-09-21T14:13:20Z","stream":"{stream}","logtag":"{tag}","message":"{text}"}}"#)
    }

    fn file(text: &str) -> String {
        format!(r#"{{"log":"{text}","stream":"stdout","time":"2026-09-21T14:13:20Z"}}"#)
    }

    fn fluentd(number: usize, last: bool, text: &str) -> String {
        format!(
            r#"{{"log":"{text}","container_id":"c","source":"stdout","partial_message":"true","partial_id":"i",
                "partial_ordinal":"{number}","partial_last":"{last}"}}"#
        )
    }

    #[test]
    fn parts_of_lines_are_joined_and_the_lines_of_two_streams_may_be_mixed() {
        let mut joiner = LineJoiner::default();
        let lines =
            [cri("P", "stdout", "a"), cri("P", "stderr", "x"), cri("P", "stdout", "b"), cri("F", "stdout", "c")];
        assert_eq!(vec!["abc"], read(&mut joiner, &lines));
        assert_eq!(vec!["xy", "alone"], read(&mut joiner, &[cri("F", "stderr", "y"), cri("F", "stderr", "alone")]));
        assert_eq!(
            vec!["123"],
            read(&mut joiner, &[fluentd(1, false, "1"), fluentd(2, false, "2"), fluentd(3, true, "3")])
        );
        assert_eq!(vec!["one two"], read(&mut joiner, &[file("one "), file("two\n")]));
        assert!(!joiner.is_open() && joiner.bytes() == 0);
    }

    #[test]
    fn a_line_without_its_end_is_stored_in_its_parts() {
        let mut joiner = LineJoiner::default();
        assert_eq!(Vec::<String>::new(), read(&mut joiner, &[cri("P", "stdout", "a"), cri("P", "stdout", "b")]));
        assert!(joiner.expire(Instant::now()).is_empty() && joiner.is_open());
        assert_eq!(vec!["a*", "b*"], texts(&joiner.expire(Instant::now() + MAX_WAIT)));
        // The rest of this line comes alone, and the next line is whole again.
        let rest = [cri("P", "stdout", "c"), cri("F", "stdout", "d"), cri("P", "stdout", "1"), cri("F", "stdout", "2")];
        assert_eq!(vec!["c*", "d*", "12"], read(&mut joiner, &rest));
        assert_eq!(0, joiner.bytes());
    }

    #[test]
    fn a_missing_part_is_noticed() {
        let mut joiner = LineJoiner::default();
        let lines = [fluentd(1, false, "1"), fluentd(3, false, "3"), fluentd(4, true, "4")];
        assert_eq!(vec!["1*", "3*", "4*"], read(&mut joiner, &lines));
        assert_eq!(vec!["2*", "3*"], read(&mut joiner, &[fluentd(2, false, "2"), fluentd(3, true, "3")]));
    }

    #[test]
    fn lines_of_a_sender_that_removes_line_ends_stay_lines() {
        let mut joiner = LineJoiner::default();
        let lines: Vec<_> = (0..20).map(|number| file(&number.to_string())).collect();
        let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(expected, read(&mut joiner, &lines));

        let part = "x".repeat(DOCKER_PART_BYTES);
        assert_eq!(vec![format!("{part}end")], read(&mut joiner, &[file(&part), file("end\n")]));
    }

    #[test]
    fn open_lines_are_bounded_in_bytes_and_number() {
        let mut joiner = LineJoiner::default();
        let part = cri("P", "stdout", &"x".repeat(10_000));
        let mut stored = 0;
        for _ in 0..1000 {
            stored += read(&mut joiner, std::slice::from_ref(&part)).len();
            assert!(joiner.bytes() <= MAX_BYTES);
        }
        assert_eq!(1000, stored + joiner.end().len());

        let mut stored = 0;
        for number in 0..1000 {
            stored += read(&mut joiner, &[cri("P", &number.to_string(), "x")]).len();
        }
        assert!(joiner.lines.len() <= MAX_OPEN_LINES);
        assert_eq!(1000, stored + joiner.end().len());
    }
}
