//! Answers to OTLP senders, in the encoding of the request: an `ExportLogsServiceResponse`, or a `google.rpc.Status` if
//! no record was accepted.

use serde_json::json;

/// The encoding of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

/// Records of a request that were rejected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RejectedRecords {
    /// Their number.
    pub records: u64,
    /// The reason for the first one.
    pub why: String,
}

impl Encoding {
    /// The encoding of a content type, without its parameters. `None`: OTLP does not use this content type.
    pub fn of(content_type: &str) -> Option<Self> {
        [Self::Protobuf, Self::Json].into_iter().find(|known| known.content_type().eq_ignore_ascii_case(content_type))
    }

    /// The content type of the encoding.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/x-protobuf",
            Self::Json => "application/json",
        }
    }

    /// The answer when all records except the rejected ones are safe.
    pub fn success(self, rejected: &RejectedRecords) -> Vec<u8> {
        match (self, rejected.records) {
            (Self::Protobuf, 0) => Vec::new(),
            (Self::Json, 0) => b"{}".to_vec(),
            (Self::Protobuf, records) => {
                let mut partial = vec![1 << 3];
                push_number(&mut partial, records);
                push_bytes(&mut partial, 2, rejected.why.as_bytes());
                let mut response = Vec::new();
                push_bytes(&mut response, 1, &partial);
                response
            }
            // In the JSON form of protobuf a 64-bit number is text.
            (Self::Json, records) => {
                let partial = json!({ "rejectedLogRecords": records.to_string(), "errorMessage": rejected.why });
                json!({ "partialSuccess": partial }).to_string().into_bytes()
            }
        }
    }

    /// The answer when no record was accepted, with this HTTP status.
    pub fn failure(self, status: u16, why: &str) -> Vec<u8> {
        let code = code(status);
        match self {
            Self::Protobuf => {
                let mut body = vec![1 << 3];
                push_number(&mut body, code);
                push_bytes(&mut body, 2, why.as_bytes());
                body
            }
            Self::Json => json!({ "code": code, "message": why }).to_string().into_bytes(),
        }
    }
}

/// The `google.rpc.Code` that corresponds to an HTTP status.
fn code(status: u16) -> u64 {
    match status {
        401 => 16,
        403 => 7,
        404 => 5,
        405 => 12,
        429 => 8,
        400..=499 => 3,
        503 => 14,
        _ => 13,
    }
}

/// Appends a varint: seven bits per byte, lowest first.
fn push_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a field that is text or a message.
fn push_bytes(to: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    to.push(field << 3 | 2);
    push_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_records_are_counted_with_the_reason() {
        let rejected = RejectedRecords { records: 300, why: "x".repeat(130) };
        let why = [b"\x12\x82\x01", "x".repeat(130).as_bytes()].concat();
        let partial = [b"\x08\xAC\x02".as_slice(), &why].concat();

        assert_eq!([b"\x0A\x88\x01".as_slice(), &partial].concat(), Encoding::Protobuf.success(&rejected));
        let expected = json!({"partialSuccess": {"rejectedLogRecords": "300", "errorMessage": rejected.why}});
        assert_eq!(expected, serde_json::from_slice::<serde_json::Value>(&Encoding::Json.success(&rejected)).unwrap());
    }

    #[test]
    fn if_all_records_are_accepted_the_answer_is_empty() {
        assert_eq!(b"".as_slice(), Encoding::Protobuf.success(&RejectedRecords::default()));
        assert_eq!(b"{}".as_slice(), Encoding::Json.success(&RejectedRecords::default()));
    }

    #[test]
    fn a_failure_is_an_rpc_status() {
        assert_eq!(b"\x08\x03\x12\x02no".as_slice(), Encoding::Protobuf.failure(400, "no"));
        assert_eq!(br#"{"code":14,"message":"later"}"#.as_slice(), Encoding::Json.failure(503, "later"));
        assert_eq!([16, 7, 3, 3, 8, 13], [401, 403, 413, 415, 429, 500].map(code));
    }

    #[test]
    fn an_encoding_is_known_by_its_content_type() {
        assert_eq!(Some(Encoding::Protobuf), Encoding::of("Application/X-Protobuf"));
        assert_eq!(None, Encoding::of("text/plain"));
    }
}
