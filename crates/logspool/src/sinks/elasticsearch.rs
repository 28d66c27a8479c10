//! Elasticsearch or OpenSearch, by the bulk interface: `POST /_bulk`.
//!
//! Each record is created under an id that is made from the sink's stream and the number of the record. If a request is
//! repeated, its records have the same ids, and the receiver answers 409 for those that it has. So each record is
//! stored once in an index. A data stream that begins a new index in between does not recognise ids of the old one.
//!
//! Documents have the fields of the Elastic Common Schema, as `ecs_logging` writes them.

mod document;

use std::io;

use serde_json::Value;

use super::http::{
    self, BatchVerdict, HttpAddress, HttpAnswer, HttpFormat, HttpHeaders, HttpRecord, HttpSink, RecordOutcome,
};
use super::parts::RecordParts;
use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue};

/// Maximum size of an answer. An answer has a status for each record, and a reason for each refused one.
const ANSWER_BYTES: u64 = 8 * 1024 * 1024;

const PATH: &str = "/_bulk";

/// Leaves out of an answer what the sink does not read.
const QUERY: &str = "?filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason";

http::options! {
    /// Sends records to Elasticsearch, OpenSearch, or another receiver of their bulk interface, in the Elastic Common
    /// Schema.
    pub struct ElasticsearchOptions {
        /// `http://host:port` or `https://host:port`; `/_bulk` is added.
        pub address: HttpAddress,
        /// Name of the data stream or index.
        pub index: IndexName = Text("logs-logspool-default"),
        /// More headers, one `Name: value` a line; `Authorization: ApiKey KEY` for an API key.
        pub headers: Option<HttpHeaders> = Nothing,
    }
}

/// The name of an index or data stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexName(String);

impl OptionField for IndexName {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let text = String::from_value(value)?;
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.' | '+');
        let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.');
        if text.len() > 255 || !begins_well || !text.chars().all(is_allowed) || text.starts_with("..") {
            return Err(format!(
                "{text:?} is no name of an index (fix: small letters, digits, and - _ . after the first)"
            ));
        }
        Ok(Self(text))
    }

    fn to_value(&self) -> OptionValue {
        OptionValue::Text(self.0.clone())
    }
}

impl SinkOptions for ElasticsearchOptions {
    const KIND: &'static str = "elasticsearch";
    const TRAITS: Traits = Traits { confirms_later: true, ..Traits::REMOTE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        let mut settings = http::settings!(self, PATH);
        settings.url.push_str(QUERY);
        Ok(Box::new(HttpSink::open(Box::new(self.clone()), &settings)?))
    }

    fn place(&self) -> Place {
        Place::Address(self.address.text().to_owned())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![http::sample!(path, index: IndexName("logs-app".to_owned()))]
    }
}

impl HttpFormat for ElasticsearchOptions {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn answer_bytes(&self) -> u64 {
        ANSWER_BYTES
    }

    fn is_numbered(&self) -> bool {
        true
    }

    fn refuses_by_status(&self) -> bool {
        false
    }

    fn encode(&self, records: &[HttpRecord<'_>], stream: &str) -> Vec<u8> {
        let (mut body, index) = (String::new(), &self.index.0);
        for record in records {
            body.push_str(&format!(
                "{{\"create\":{{\"_index\":\"{index}\",\"_id\":\"{stream}-{}\"}}}}\n",
                record.number
            ));
            body.push_str(&Value::Object(document::document(&RecordParts::read(record.entry))).to_string());
            body.push('\n');
        }
        body.into_bytes()
    }

    fn judge(&self, answer: &HttpAnswer, records: usize) -> BatchVerdict {
        let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
            return BatchVerdict::Unreadable(answer.of_another_kind("Elasticsearch"));
        };
        if body["errors"] == Value::Bool(false) {
            return BatchVerdict::Accepted;
        }
        let Some(items) = body["items"].as_array().filter(|items| items.len() == records) else {
            return BatchVerdict::Unreadable("the receiver answers no status for each record".to_owned());
        };
        let mut reason = String::new();
        let outcomes: Vec<_> = items
            .iter()
            .map(|item| {
                let result = item.as_object().and_then(|item| item.values().next()).unwrap_or(&Value::Null);
                let outcome = match result["status"].as_u64() {
                    // 409: an earlier request has created it.
                    Some(200..=299 | 409) => RecordOutcome::Accepted,
                    // Only these are about what a record contains.
                    Some(400 | 413 | 422) => RecordOutcome::Refused,
                    _ => RecordOutcome::Again,
                };
                if outcome != RecordOutcome::Accepted && reason.is_empty() {
                    let (kind, why) = (&result["error"]["type"], &result["error"]["reason"]);
                    let text = |value: &Value| value.as_str().unwrap_or("without a reason").to_owned();
                    let what = if outcome == RecordOutcome::Again { "cannot take" } else { "refuses" };
                    let status = &result["status"];
                    reason = format!("the receiver {what} a record: {status} {}: {}", text(kind), text(why));
                }
                outcome
            })
            .collect();
        if outcomes.iter().all(|outcome| *outcome == RecordOutcome::Accepted) {
            return BatchVerdict::Accepted;
        }
        BatchVerdict::Each(outcomes, reason.chars().take(400).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::entry;

    fn options() -> ElasticsearchOptions {
        ElasticsearchOptions::samples("/sample", -1).remove(0)
    }

    fn judge(body: &str, records: usize) -> BatchVerdict {
        let answer = HttpAnswer {
            status: 200,
            retry_after: None,
            location: None,
            content_type: None,
            body: body.as_bytes().to_vec(),
        };
        options().judge(&answer, records)
    }

    #[test]
    fn each_record_has_an_id_of_its_stream_and_number() {
        let one = entry(&[("message", "one\ntwo")]);
        let records = [HttpRecord { entry: &one, number: 7 }, HttpRecord { entry: &one, number: 8 }];
        let body = String::from_utf8(options().encode(&records, "s-1")).unwrap();
        let lines: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

        assert_eq!(4, lines.len());
        assert!(body.ends_with('\n'));
        assert_eq!(serde_json::json!({"create": {"_index": "logs-app", "_id": "s-1-7"}}), lines[0]);
        assert_eq!("s-1-8", lines[2]["create"]["_id"]);
        assert_eq!("one\ntwo", lines[3]["message"]);
    }

    #[test]
    fn each_record_has_its_own_status() {
        use RecordOutcome::{Accepted, Again, Refused};

        assert_eq!(BatchVerdict::Accepted, judge(r#"{"errors":false}"#, 3));
        let body = r#"{"errors":true,"items":[{"create":{"status":201}},{"create":{"status":409}},
            {"create":{"status":429,"error":{"type":"busy","reason":"full"}}},
            {"create":{"status":400,"error":{"type":"mapper","reason":"no"}}},{"create":{"status":503}},
            {"create":{"status":404,"error":{"type":"index_not_found_exception","reason":"no"}}}]}"#;
        let BatchVerdict::Each(outcomes, why) = judge(body, 6) else { panic!("it has a status for each") };
        assert_eq!([Accepted, Accepted, Again, Refused, Again, Again], *outcomes);
        assert_eq!("the receiver cannot take a record: 429 busy: full", why);
        let repeated = r#"{"errors":true,"items":[{"create":{"status":409}}]}"#;
        assert_eq!(BatchVerdict::Accepted, judge(repeated, 1));
    }

    #[test]
    fn an_answer_that_is_not_of_this_interface_accepts_nothing() {
        for body in ["", "<html>", "{}", r#"{"errors":true,"items":[]}"#, r#"{"errors":true}"#] {
            assert!(matches!(judge(body, 1), BatchVerdict::Unreadable(_)), "{body}");
        }
    }

    #[test]
    fn invalid_index_names_are_refused() {
        for name in ["", "Logs", "a/b", "_a", "-a", "a b", "..", "a?x"] {
            assert!(IndexName::from_value(&OptionValue::Text(name.to_owned())).is_err(), "{name}");
        }
        assert!(IndexName::from_value(&OptionValue::Text("logs-app-2024.01".to_owned())).is_ok());
    }
}
