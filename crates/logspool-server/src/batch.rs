//! Records on their way into the stores: many in one piece of memory, with their defaults filled in.
//!
//! A source decodes into a batch, once; each store reads the same rows. So a record costs no allocation of its own,
//! and its fields are made into JSON once, whatever the number of stores.

use std::borrow::Cow;

use crate::record::Record;

/// What a source knows of a record beside what its sender says.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// When it came, in nanoseconds since 1970: the time of a record that has none.
    pub time_ns: i64,
    /// The machine it came from: the host of a record that names none.
    pub host: &'a str,
}

/// Columns with text, in the order in which a row keeps them.
const TEXTS: usize = 13;

/// The length that stands for a text that is not there.
const ABSENT: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Meta {
    time_ns: i64,
    process: Option<u64>,
    thread: Option<u64>,
    line: Option<u32>,
    level: u16,
    /// Where its text begins in [`Batch::text`].
    begins: usize,
    lengths: [u32; TEXTS],
}

/// Bytes that a record takes beside what it says: its row, and the longest address as its host. Decoders of frames that
/// hold many count them, since a few bytes of a frame are a record.
pub const ROW_BYTES: usize = size_of::<Meta>() + 48;

/// Records for the stores.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    text: String,
    rows: Vec<Meta>,
}

/// A record as a store writes it: [`Record`] with its time, and its fields as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of Record")]
pub struct Row<'a> {
    pub time_ns: i64,
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
    /// A JSON object; `None` where the record has no other fields.
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
        let mut lengths = [ABSENT; TEXTS];
        for (length, text) in lengths.iter_mut().zip(texts) {
            *length = self.append(text);
        }
        if !record.fields.is_empty() {
            lengths[TEXTS - 1] = self.append(Some(&record.fields_as_json()));
        }
        self.rows.push(Meta {
            time_ns: record.time_ns.unwrap_or(arrival.time_ns),
            process: record.process,
            thread: record.thread,
            line: record.line,
            level: record.level,
            begins,
            lengths,
        });
    }

    /// The length of a text that now stands at the end. A frame is far shorter than what does not fit.
    fn append(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text else { return ABSENT };
        let length = u32::try_from(text.len()).unwrap_or(ABSENT);
        if length != ABSENT {
            self.text.push_str(text);
        }
        length
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes of memory in use, without spare capacity.
    pub fn used_bytes(&self) -> usize {
        self.text.len() + self.rows.len() * size_of::<Meta>()
    }

    /// Bytes of memory that it occupies, spare capacity included.
    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.rows.capacity() * size_of::<Meta>()
    }

    /// A record by its place, from 0.
    pub fn row(&self, place: usize) -> Option<Row<'_>> {
        self.rows.get(place).map(|meta| self.read(meta))
    }

    /// All of them, in the order in which they came.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.rows.iter().map(|meta| self.read(meta))
    }

    fn read<'a>(&'a self, meta: &Meta) -> Row<'a> {
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
    /// The record again.
    pub fn record(&self) -> Record<'a> {
        let text = |text: Option<&'a str>| text.map(Cow::Borrowed);
        Record {
            time_ns: Some(self.time_ns),
            level: self.level,
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
    fn records_are_read_as_they_were_put_in() {
        let full = Record {
            time_ns: Some(-5),
            level: 40,
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
    fn what_a_sender_does_not_say_is_told_by_its_arrival() {
        let mut batch = Batch::default();
        batch.push(&Record::default(), ARRIVAL);
        batch.push(&Record::default(), Arrival { host: "", ..ARRIVAL });

        let rows: Vec<_> = batch.rows().collect();
        assert_eq!((7, Some("192.0.2.1"), None), (rows[0].time_ns, rows[0].host, rows[0].fields));
        assert_eq!(None, rows[1].host);
    }
}
