//! The columns of the table `records`. Encodes a row for `COPY BINARY`, and decodes a row of a query result.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use tokio_postgres::Row as Found;

use super::text;
use crate::batch::Row;
use crate::record::{LinePart, Record};

/// The columns, in the order in which [`put`] writes them. Numbers come first, so that PostgreSQL stores them without
/// padding.
pub(super) const COLUMNS: &str = "time_ns, arrived_ns, process, thread, line, level, logger, message, file, function, host, \
    process_name, thread_name, task, trace_id, span_id, exception, stack, fields";

/// The columns as [`read`] expects them.
pub(super) const SELECTED: &str = "time_ns, arrived_ns, process, thread, line, level, logger, message, file, function, host, \
    process_name, thread_name, task, trace_id, span_id, exception, stack, fields::text";

/// Number of columns.
const COUNT: i16 = 19;

/// Maximum bytes of a row excluding its texts. A row has a column count, a length for each column, five 8-byte numbers,
/// the 4-byte level and the version byte of `jsonb`.
const ROW_BYTES: usize = 2 + COUNT as usize * 4 + 5 * 8 + 4 + 1;

/// Writes the header of `COPY BINARY`: the signature, no flags and no extension.
pub(super) fn begin(to: &mut BytesMut) {
    to.put_slice(b"PGCOPY\n\xff\r\n\0");
    to.put_i32(0);
    to.put_i32(0);
}

/// Writes the trailer of `COPY BINARY`.
pub(super) fn end(to: &mut BytesMut) {
    to.put_i16(-1);
}

/// Writes a row.
pub(super) fn put(row: &Row<'_>, to: &mut BytesMut) {
    put_columns(COUNT, row, to);
    // The version byte of jsonb's binary form precedes the text.
    put_bytes(row.fields.map(text::stored_json), &[1], to);
}

/// Writes a row with the fields as plain text, followed by the column `more`.
pub(super) fn put_as_text(row: &Row<'_>, more: &str, to: &mut BytesMut) {
    put_columns(COUNT + 1, row, to);
    put_bytes(row.fields.map(text::stored_json), &[], to);
    put_text(Some(more), to);
}

/// Writes the columns before the fields.
fn put_columns(count: i16, row: &Row<'_>, to: &mut BytesMut) {
    to.reserve(ROW_BYTES);
    to.put_i16(count);
    put_number(Some(row.time_ns), to);
    put_number(Some(row.arrived_ns), to);
    // PostgreSQL has no unsigned integers. The bits are stored as a signed integer, and converted back on reading.
    put_number(row.process.map(u64::cast_signed), to);
    put_number(row.thread.map(u64::cast_signed), to);
    put_number(row.line.map(i64::from), to);
    to.put_i32(4);
    to.put_i32(i32::from(row.level));
    put_text(Some(row.logger), to);
    put_text(Some(row.message), to);
    for text in [
        row.file,
        row.function,
        row.host,
        row.process_name,
        row.thread_name,
        row.task,
        row.trace_id,
        row.span_id,
        row.exception,
        row.stack,
    ] {
        put_text(text, to);
    }
}

fn put_number(number: Option<i64>, to: &mut BytesMut) {
    let Some(number) = number else { return to.put_i32(-1) };
    to.put_i32(8);
    to.put_i64(number);
}

fn put_text(text: Option<&str>, to: &mut BytesMut) {
    put_bytes(text.map(text::stored), &[], to);
}

/// Writes a text with its length. A text that is too long for the format's `i32` length would become NULL. No text is
/// that long, because a frame is far shorter.
fn put_bytes(text: Option<Cow<'_, str>>, before: &[u8], to: &mut BytesMut) {
    let fitting = text.and_then(|text| Some((i32::try_from(before.len() + text.len()).ok()?, text)));
    let Some((length, text)) = fitting else { return to.put_i32(-1) };
    to.put_i32(length);
    to.put_slice(before);
    to.put_slice(text.as_bytes());
}

/// Reads a row with the columns of [`SELECTED`].
///
/// # Errors
///
/// A column does not have the expected type.
pub(super) fn read(row: &Found) -> Result<Record<'_>, tokio_postgres::Error> {
    let text = |at: usize| row.try_get::<_, Option<&str>>(at).map(|found| found.map(text::original));
    let number = |at: usize| row.try_get::<_, Option<i64>>(at);
    let fields = match row.try_get::<_, Option<&str>>(18)?.map(text::original_json) {
        Some(Cow::Borrowed(json)) => Record::fields_from_json(json),
        Some(Cow::Owned(json)) => {
            Record { fields: Record::fields_from_json(&json), ..Record::default() }.into_owned().fields
        }
        None => Vec::new(),
    };
    Ok(Record {
        time_ns: number(0)?,
        arrived_ns: number(1)?,
        process: number(2)?.map(i64::cast_unsigned),
        thread: number(3)?.map(i64::cast_unsigned),
        line: number(4)?.and_then(|line| u32::try_from(line).ok()),
        level: u16::try_from(row.try_get::<_, i32>(5)?).unwrap_or_default(),
        sent_level: None,
        lacks_zone: false,
        part: LinePart::Whole,
        logger: text(6)?.unwrap_or_default(),
        message: text(7)?.unwrap_or_default(),
        file: text(8)?,
        function: text(9)?,
        host: text(10)?,
        process_name: text(11)?,
        thread_name: text(12)?,
        task: text(13)?,
        trace_id: text(14)?,
        span_id: text(15)?,
        exception: text(16)?,
        stack: text(17)?,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Arrival, Batch};
    use crate::value::Value;

    #[test]
    fn a_row_has_the_binary_form_of_copy() {
        let record = Record {
            process: Some(u64::MAX),
            level: 40,
            message: "a\0".into(),
            fields: vec![("k".into(), Value::Int(1))],
            ..Record::default()
        };
        let mut batch = Batch::default();
        batch.push(&record, Arrival { time_ns: 5, host: "" });
        let mut found = BytesMut::new();
        put(&batch.row(0).unwrap(), &mut found);

        let mut expected = BytesMut::new();
        expected.put_i16(19);
        expected.put_slice(b"\0\0\0\x08\0\0\0\0\0\0\0\x05");
        expected.put_slice(b"\0\0\0\x08\0\0\0\0\0\0\0\x05");
        expected.put_slice(b"\0\0\0\x08\xff\xff\xff\xff\xff\xff\xff\xff");
        expected.put_slice(&[0xff; 8]);
        expected.put_slice(b"\0\0\0\x04\0\0\0\x28");
        expected.put_slice(b"\0\0\0\0");
        expected.put_slice(b"\0\0\0\x03a\x01\x01");
        expected.put_slice(&[0xff; 40]);
        expected.put_slice(b"\0\0\0\x08\x01{\"k\":1}");
        assert_eq!(expected, found);
        assert_eq!(usize::try_from(COUNT).unwrap(), COLUMNS.split(',').count());
        assert_eq!(format!("{COLUMNS}::text"), SELECTED);
    }
}
