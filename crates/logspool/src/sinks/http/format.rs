//! What differs between the sinks that send over HTTP: how records are encoded, and how the answer is read.

use std::fmt::Debug;

use super::HttpAnswer;

/// A record for an encoder.
#[derive(Debug, Clone, Copy)]
pub struct HttpRecord<'a> {
    /// The record's entry; see `format/entry.rs`.
    pub entry: &'a [u8],
    /// Number of the record in the stream of the sink.
    pub number: u64,
}

/// What happened to one record of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The receiver has it.
    Accepted,
    /// Send it again later.
    Again,
    /// The receiver refuses it for ever.
    Refused,
}

/// What an answer with a status of success says about the records of its request.
#[derive(Debug, PartialEq, Eq)]
pub enum BatchVerdict {
    /// All were accepted.
    Accepted,
    /// Each record has its own result. The text is a reason for those that were not accepted.
    Each(Vec<RecordOutcome>, String),
    /// The answer cannot be read: send the records again later.
    Unreadable(String),
}

/// A form of requests.
pub trait HttpFormat: Debug + Send {
    /// Value of the header `Content-Type`.
    fn content_type(&self) -> &'static str;

    /// Maximum number of bytes of an answer that are read.
    fn answer_bytes(&self) -> u64 {
        64 * 1024
    }

    /// Whether the receiver recognises a record by its stream and number.
    fn is_numbered(&self) -> bool {
        false
    }

    /// Whether a refusal of a whole request is about its records. Otherwise only the answer to an accepted request
    /// refuses records, and a refused request is sent again later.
    fn refuses_by_status(&self) -> bool {
        true
    }

    /// The body of a request. `stream` identifies the stream of the records.
    fn encode(&self, records: &[HttpRecord<'_>], stream: &str) -> Vec<u8>;

    /// Reads an answer with a status of success to a request with this number of records.
    fn judge(&self, answer: &HttpAnswer, records: usize) -> BatchVerdict;
}
