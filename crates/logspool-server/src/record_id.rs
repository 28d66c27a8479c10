//! The id of a record: its time and a checksum of its contents. It is the same in every store.
//!
//! Records with the same time and the same contents have the same id.

use sha2::{Digest, Sha256};

use crate::identity::identity;
use crate::record::Record;

/// Number of bytes of the checksum. Records of one nanosecond are told apart by it.
const CHECKSUM_BYTES: usize = 6;

/// The id of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordId {
    /// The time of the record in nanoseconds since 1970.
    pub time_ns: i64,
    checksum: String,
}

impl RecordId {
    /// The id of a record. The time of arrival is not part of it, because two services may receive the same record.
    pub fn of(record: &Record<'_>) -> Self {
        let mut digest = Sha256::new();
        let texts = [
            Some(&record.logger),
            Some(&record.message),
            record.file.as_ref(),
            record.function.as_ref(),
            record.host.as_ref(),
            record.process_name.as_ref(),
            record.thread_name.as_ref(),
            record.task.as_ref(),
            record.trace_id.as_ref(),
            record.span_id.as_ref(),
            record.exception.as_ref(),
            record.stack.as_ref(),
        ];
        for text in texts {
            add(&mut digest, text.map_or("", |text| text));
        }
        add(&mut digest, &format!("{} {:?} {:?} {:?}", record.level, record.line, record.process, record.thread));
        let mut fields: Vec<_> = record.fields.iter().map(|(name, value)| (name, identity(value))).collect();
        fields.sort();
        for (name, value) in fields {
            add(&mut digest, name);
            add(&mut digest, &value);
        }
        let checksum = digest.finalize();
        let checksum = checksum[..CHECKSUM_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
        Self { time_ns: record.time_ns.unwrap_or_default(), checksum }
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, checksum) = text.rsplit_once('-')?;
        let is_checksum = checksum.len() == 2 * CHECKSUM_BYTES
            && checksum.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let time_ns = time.parse().ok().filter(|_| is_checksum)?;
        Some(Self { time_ns, checksum: checksum.to_owned() })
    }
}

/// Adds a text with its length, so that the borders of texts count.
fn add(digest: &mut Sha256, text: &str) {
    digest.update((text.len() as u64).to_le_bytes());
    digest.update(text);
}

impl std::fmt::Display for RecordId {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}-{}", self.time_ns, self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn an_id_is_read_as_it_is_written_and_changes_with_the_contents() {
        let record = Record {
            time_ns: Some(-5),
            message: "a".into(),
            fields: vec![("k".into(), Value::Int(1)), ("l".into(), Value::Float(2.0))],
            ..Record::default()
        };
        let swapped = Record { fields: record.fields.iter().rev().cloned().collect(), ..record.clone() };
        let other = Record { message: "".into(), file: Some("a".into()), ..record.clone() };
        let id = RecordId::of(&record);

        assert_eq!(Some(&id), RecordId::parse(&id.to_string()).as_ref());
        assert_eq!(id, RecordId::of(&swapped));
        assert_ne!(id, RecordId::of(&other));
        for text in ["", "5", "5-", "x-0123456789ab", "5-0123456789aB", "5-0123456789"] {
            assert_eq!(None, RecordId::parse(text), "{text}");
        }
    }
}
