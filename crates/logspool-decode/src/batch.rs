//! A batch of records for the stores, in one block of memory, with defaults filled in.
//!
//! A source decodes into a batch, once, and all stores read the same rows. So a record needs no allocation of its own,
//! and its fields are encoded as JSON once.

use std::borrow::Cow;

use crate::record::{LinePart, Record};

/// Values that a record gets if its sender does not give them.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Time of arrival in nanoseconds since 1970, also used as the time of a record without one.
    pub time_ns: i64,
    /// The sender's machine, used as the host of a record without one.
    pub host: &'a str,
}

/// Number of text columns, in the order of a row.
const TEXT_COLUMNS: usize = 13;

/// The length that marks a missing text.
const ABSENT: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct RowMeta {
    time_ns: i64,
    arrived_ns: i64,
    process: Option<u64>,
    thread: Option<u64>,
    line: Option<u32>,
    level: u16,
    /// Position of the record's text in [`Batch::text`].
    begins: usize,
    lengths: [u32; TEXT_COLUMNS],
}

/// Bytes of memory that a record takes in addition to its texts: its row, and the longest address as its host. Decoders
/// of frames with many records count these bytes, because a record may take only a few bytes of a frame.
pub const ROW_BYTES: usize = size_of::<RowMeta>() + 48;

/// Spare capacity that a batch may keep. Chosen: below this, freeing memory costs more than it gains.
const MAX_SPARE_BYTES: usize = 4 * 1024;

/// Records for the stores.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    text: String,
    rows: Vec<RowMeta>,
}

/// A record in the form that a store writes: [`Record`] with a time, and with its fields as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of Record")]
pub struct Row<'a> {
    pub time_ns: i64,
    pub arrived_ns: i64,
    pub level: u16,
    pub logger: &'a str,
    pub message: &'a str,
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    pub function: Option<&'a str>,
    pub host: Option<&'a str>,
    pub process: Option<u64>,
    pub process_name: Option<&'a str>,
    pub thread: Option<u64>,
    pub thread_name: Option<&'a str>,
    pub task: Option<&'a str>,
    pub trace_id: Option<&'a str>,
    pub span_id: Option<&'a str>,
    pub exception: Option<&'a str>,
    pub stack: Option<&'a str>,
    /// The fields as a JSON object; `None` if the record has no fields.
    pub fields: Option<&'a str>,
}

impl Batch {
    /// Adds a record.
    pub fn push(&mut self, record: &Record<'_>, arrival: Arrival<'_>) {
        let begins = self.text.len();
        let host = record.host.as_deref().unwrap_or(arrival.host);
        let texts = [
            Some(&*record.logger),
            Some(&*record.message),
            record.file.as_deref(),
            record.function.as_deref(),
            (!host.is_empty()).then_some(host),
            record.process_name.as_deref(),
            record.thread_name.as_deref(),
            record.task.as_deref(),
            record.trace_id.as_deref(),
            record.span_id.as_deref(),
            record.exception.as_deref(),
            record.stack.as_deref(),
        ];
        let mut lengths = [ABSENT; TEXT_COLUMNS];
        for (length, text) in lengths.iter_mut().zip(texts) {
            *length = self.append(text);
        }
        if !record.fields.is_empty() {
            lengths[TEXT_COLUMNS - 1] = self.append(Some(&record.fields_as_json()));
        }
        self.rows.push(RowMeta {
            time_ns: record.time_ns.unwrap_or(arrival.time_ns),
            arrived_ns: arrival.time_ns,
            process: record.process,
            thread: record.thread,
            line: record.line,
            level: record.level,
            begins,
            lengths,
        });
    }

    /// Replaces the level of the last record.
    pub fn set_last_level(&mut self, level: u16) {
        if let Some(last) = self.rows.last_mut() {
            last.level = level;
        }
    }

    /// Replaces the time of the last record.
    pub fn set_last_time(&mut self, time_ns: i64) {
        if let Some(last) = self.rows.last_mut() {
            last.time_ns = time_ns;
        }
    }

    /// Appends a text, and returns its length. The length always fits the type, because frames are far shorter.
    fn append(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text else { return ABSENT };
        let length = u32::try_from(text.len()).unwrap_or(ABSENT);
        if length != ABSENT {
            self.text.push_str(text);
        }
        length
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Frees spare capacity, unless it is small (`MAX_SPARE_BYTES`).
    pub fn shrink_to_fit(&mut self) {
        if self.bytes() - self.used_bytes() > MAX_SPARE_BYTES {
            self.text.shrink_to_fit();
            self.rows.shrink_to_fit();
        }
    }

    /// Bytes of memory in use, without spare capacity.
    pub fn used_bytes(&self) -> usize {
        self.text.len() + self.rows.len() * size_of::<RowMeta>()
    }

    /// Bytes of memory allocated, including spare capacity.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.rows.capacity() * size_of::<RowMeta>()
    }

    /// A record by its index, from 0.
    pub fn row(&self, place: usize) -> Option<Row<'_>> {
        self.rows.get(place).map(|meta| self.read(meta))
    }

    /// All records, in the order in which they were added.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|meta| self.read(meta))
    }

    fn read<'a>(&'a self, meta: &RowMeta) -> Row<'a> {
        let mut at = meta.begins;
        let mut lengths = meta.lengths.iter();
        let mut next = || {
            let length = *lengths.next()?;
            let from = at;
            (length != ABSENT).then(|| {
                at += length as usize;
                &self.text[from..at]
            })
        };
        Row {
            time_ns: meta.time_ns,
            arrived_ns: meta.arrived_ns,
            level: meta.level,
            logger: next().unwrap_or_default(),
            message: next().unwrap_or_default(),
            file: next(),
            line: meta.line,
            function: next(),
            host: next(),
            process: meta.process,
            process_name: next(),
            thread: meta.thread,
            thread_name: next(),
            task: next(),
            trace_id: next(),
            span_id: next(),
            exception: next(),
            stack: next(),
            fields: next(),
        }
    }
}

impl<'a> Row<'a> {
    /// Converts the row to a record.
    pub fn record(&self) -> Record<'a> {
        let text = |text: Option<&'a str>| text.map(Cow::Borrowed);
        Record {
            time_ns: Some(self.time_ns),
            arrived_ns: Some(self.arrived_ns),
            level: self.level,
            sent_level: None,
            lacks_zone: false,
            part: LinePart::Whole,
            logger: Cow::Borrowed(self.logger),
            message: Cow::Borrowed(self.message),
            file: text(self.file),
            line: self.line,
            function: text(self.function),
            host: text(self.host),
            process: self.process,
            process_name: text(self.process_name),
            thread: self.thread,
            thread_name: text(self.thread_name),
            task: text(self.task),
            trace_id: text(self.trace_id),
            span_id: text(self.span_id),
            exception: text(self.exception),
            stack: text(self.stack),
            fields: self.fields.map(Record::fields_from_json).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    const ARRIVAL: Arrival<'_> = Arrival { time_ns: 7, host: "192.0.2.1" };

    #[test]
    fn records_are_read_as_they_were_added() {
        let full = Record {
            time_ns: Some(-5),
            arrived_ns: Some(7),
            level: 40,
            sent_level: None,
            lacks_zone: false,
            part: LinePart::Whole,
            logger: "shop".into(),
            message: "ü\0\u{1F600}".into(),
            file: Some("cart.py".into()),
            line: Some(42),
            function: Some("pay".into()),
            host: Some("web-1".into()),
            process: Some(u64::MAX),
            process_name: Some("".into()),
            thread: Some(2),
            thread_name: Some("T".into()),
            task: Some("k".into()),
            trace_id: Some("t".into()),
            span_id: Some("s".into()),
            exception: Some("Traceback".into()),
            stack: Some("Stack".into()),
            fields: vec![
                ("a".into(), Value::Int(1)),
                ("b".into(), Value::List(vec![Value::Null, Value::text("\u{1}")])),
            ],
        };
        let mut batch = Batch::default();
        batch.push(&full, ARRIVAL);
        batch.push(&Record::default(), ARRIVAL);
        batch.push(&full, ARRIVAL);

        assert_eq!(3, batch.len());
        assert_eq!(full, batch.row(0).unwrap().record());
        assert_eq!(full, batch.row(2).unwrap().record());
        assert_eq!(None, batch.row(3));
        assert_eq!(Some(r#"{"a":1,"b":[null,"\u0001"]}"#), batch.row(0).unwrap().fields);
    }

    #[test]
    fn missing_values_are_filled_in_from_the_arrival() {
        let mut batch = Batch::default();
        batch.push(&Record::default(), ARRIVAL);
        batch.push(&Record::default(), Arrival { host: "", ..ARRIVAL });

        let rows: Vec<_> = batch.rows().collect();
        assert_eq!((7, Some("192.0.2.1"), None), (rows[0].time_ns, rows[0].host, rows[0].fields));
        assert_eq!(None, rows[1].host);
    }
}
