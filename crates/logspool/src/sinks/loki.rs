//! Grafana Loki, by its push interface: `POST /loki/api/v1/push` in JSON.
//!
//! Records with the same labels are one stream of Loki. Labels are few and have few values: those of the option, the
//! range of the level and, if asked for, the logger. Everything else is in the line or in structured metadata.
//!
//! Loki drops a line that it already has with the same time in the same stream, so repeated requests do no harm.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value, json};

use super::http::shapes::{PairList, json_object, level_word, logfmt, time_ns};
use super::http::{self, BatchVerdict, HttpAddress, HttpAnswer, HttpFormat, HttpHeaders, HttpRecord, HttpSink};
use super::parts::RecordParts;
use super::{Place, SinkOptions, Traits};
use crate::option::{OptionField, OptionShape};
use crate::sink::Sink;
use logspool_record::definition::{Descriptor, OptionValue};

const PATH: &str = "/loki/api/v1/push";

http::options! {
    /// Sends records to Grafana Loki, or to another receiver of its push interface.
    pub struct LokiOptions {
        /// `http://host:port` or `https://host:port`; `/loki/api/v1/push` is added.
        pub address: HttpAddress,
        /// Labels of all records: `app=shop,env=prod`. The label `level` is added.
        pub labels: LokiLabels = Text(""),
        /// Whether the name of the logger is a label, too.
        pub logger_label: bool = Switch(false),
        /// What a line is: a JSON object with all parts of the record, the same as `name=value`, or only the message
        /// with the traceback.
        pub line: LokiLine = Text("json"),
        /// Whether extra and bound fields are structured metadata instead of parts of the line.
        pub structured_metadata: bool = Switch(false),
        /// More headers, one `Name: value` a line; `X-Scope-OrgID: NAME` chooses a tenant.
        pub headers: Option<HttpHeaders> = Nothing,
    }
}

/// The labels of all records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LokiLabels(PairList);

impl OptionField for LokiLabels {
    const SHAPE: OptionShape = OptionShape::Text;

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        let pairs = PairList::from_value(value)?;
        for (name, _) in &pairs.0 {
            let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_valid {
                return Err(format!("{name:?} is no name of a label (fix: letters, digits and _)"));
            }
            if name == "level" || name == "logger" {
                return Err(format!("the label {name} has the value of each record (fix: another name)"));
            }
        }
        Ok(Self(pairs))
    }

    fn to_value(&self) -> OptionValue {
        self.0.to_value()
    }
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LokiLine {
    /// A JSON object.
    Json,
    /// `name=value` pairs.
    Logfmt,
    /// The message, traceback and stack.
    Message,
}

impl OptionField for LokiLine {
    const SHAPE: OptionShape = OptionShape::Choice(&["json", "logfmt", "message"]);

    fn from_value(value: &OptionValue) -> Result<Self, String> {
        match String::from_value(value)?.as_str() {
            "json" => Ok(Self::Json),
            "logfmt" => Ok(Self::Logfmt),
            "message" => Ok(Self::Message),
            other => Err(format!("there is no line {other:?}")),
        }
    }

    fn to_value(&self) -> OptionValue {
        let word = match self {
            Self::Json => "json",
            Self::Logfmt => "logfmt",
            Self::Message => "message",
        };
        OptionValue::Text(word.to_owned())
    }
}

impl SinkOptions for LokiOptions {
    const KIND: &'static str = "loki";
    const TRAITS: Traits = Traits { confirms_later: true, ..Traits::REMOTE };

    fn open(&self, _: Descriptor) -> io::Result<Box<dyn Sink>> {
        Ok(Box::new(HttpSink::open(Box::new(self.clone()), &http::settings!(self, PATH))?))
    }

    fn place(&self) -> Place {
        Place::Address(self.address.text().to_owned())
    }

    fn samples(path: &str, _: i32) -> Vec<Self> {
        vec![http::sample!(
            path,
            labels: LokiLabels(PairList(vec![("app".to_owned(), "shop".to_owned())])),
            logger_label: false,
            line: LokiLine::Message,
            structured_metadata: false,
        )]
    }
}

impl HttpFormat for LokiOptions {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn encode(&self, records: &[HttpRecord<'_>], _: &str) -> Vec<u8> {
        let mut streams: BTreeMap<(&'static str, String), Vec<Value>> = BTreeMap::new();
        for record in records {
            let parts = RecordParts::read(record.entry);
            let logger = if self.logger_label { parts.logger.clone().into_owned() } else { String::new() };
            streams.entry((level_word(parts.level), logger)).or_default().push(self.value(&parts));
        }
        let streams = streams.into_iter().map(|((level, logger), values)| {
            let mut labels: Map<String, Value> =
                self.labels.0.0.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            labels.insert("level".to_owned(), level.into());
            if self.logger_label {
                labels.insert("logger".to_owned(), logger.into());
            }
            json!({"stream": labels, "values": values})
        });
        json!({"streams": streams.collect::<Vec<_>>()}).to_string().into_bytes()
    }

    fn judge(&self, answer: &HttpAnswer, _: usize) -> BatchVerdict {
        // Loki answers 204. Other receivers of its interface answer 200 with an empty body or a JSON object.
        let is_empty = answer.body.is_empty() && !answer.is_of_type("html");
        if is_empty || serde_json::from_slice::<Map<String, Value>>(&answer.body).is_ok() {
            return BatchVerdict::Accepted;
        }
        BatchVerdict::Unreadable(answer.of_another_kind("Loki"))
    }
}

impl LokiOptions {
    /// Time, line and, if asked for, structured metadata of a record.
    fn value(&self, parts: &RecordParts<'_>) -> Value {
        let with_fields = !self.structured_metadata;
        let line = match self.line {
            LokiLine::Json => Value::Object(json_object(parts, with_fields)).to_string(),
            LokiLine::Logfmt => logfmt(parts, with_fields),
            LokiLine::Message => parts.full_message().into_owned(),
        };
        let time = time_ns(parts).to_string();
        if with_fields {
            return json!([time, line]);
        }
        let metadata: Map<String, Value> =
            parts.fields.iter().map(|(name, value)| (name.clone().into_owned(), value.as_text().into())).collect();
        json!([time, line, metadata])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::entry;

    fn encoded(change: impl FnOnce(&mut LokiOptions), entries: &[Vec<u8>]) -> Value {
        let mut options = LokiOptions::samples("/sample", -1).remove(0);
        change(&mut options);
        let records: Vec<_> = entries.iter().map(|entry| HttpRecord { entry, number: 1 }).collect();
        serde_json::from_slice(&options.encode(&records, "")).unwrap()
    }

    #[test]
    fn records_are_streams_by_their_labels() {
        let entries = [
            entry(&[("logger", "a"), ("message", "one")]),
            entry(&[("logger", "b"), ("message", "two"), ("exception", "Traceback")]),
        ];
        let time = "1709210096789012345";

        assert_eq!(
            json!({"streams": [{
                "stream": {"app": "shop", "level": "info"},
                "values": [[time, "one"], [time, "two\nTraceback"]],
            }]}),
            encoded(|_| (), &entries)
        );
        let by_logger = encoded(|options| options.logger_label = true, &entries);
        assert_eq!(json!({"app": "shop", "level": "info", "logger": "b"}), by_logger["streams"][1]["stream"]);
    }

    #[test]
    fn fields_are_in_the_line_or_in_the_metadata() {
        let entries = [entry(&[("message", "one"), ("user", "ann")])];
        let line = |line: LokiLine, structured: bool| {
            let body = encoded(
                |options| {
                    options.line = line;
                    options.structured_metadata = structured;
                },
                &entries,
            );
            body["streams"][0]["values"][0].clone()
        };

        let object: Value = serde_json::from_str(line(LokiLine::Json, false)[1].as_str().unwrap()).unwrap();
        assert_eq!((&json!("one"), &json!("ann")), (&object["message"], &object["user"]));
        assert!(line(LokiLine::Logfmt, false)[1].as_str().unwrap().starts_with("level=INFO message=one "));
        let structured = line(LokiLine::Json, true);
        assert!(!structured[1].as_str().unwrap().contains("ann"));
        assert_eq!(json!({"user": "ann"}), structured[2]);
    }

    #[test]
    fn labels_that_loki_would_refuse_are_refused_at_once() {
        for text in ["a-b=c", "1a=b", "level=x", "logger=x", "app"] {
            let error = LokiLabels::from_value(&OptionValue::Text(text.to_owned())).unwrap_err();
            assert!(error.contains("(fix: "), "{error}");
        }
    }

    #[test]
    fn an_answer_that_is_not_of_this_interface_accepts_nothing() {
        let judge = |status, kind: &str, body: &[u8]| {
            let content_type = (!kind.is_empty()).then(|| kind.to_owned());
            let answer = HttpAnswer { status, retry_after: None, location: None, content_type, body: body.to_vec() };
            LokiOptions::samples("/sample", -1).remove(0).judge(&answer, 3)
        };
        for (status, kind, body) in [(204, "", &b""[..]), (200, "text/plain", b""), (200, "application/json", b"{}")] {
            assert_eq!(BatchVerdict::Accepted, judge(status, kind, body), "{status} {kind}");
        }
        for (kind, body) in [("text/html", &b"<html>"[..]), ("text/html", b""), ("", b"log in"), ("text/plain", b"ok?")]
        {
            let BatchVerdict::Unreadable(why) = judge(200, kind, body) else { panic!("{kind} {body:?} is accepted") };
            assert!(why.contains("no answer of Loki"), "{why}");
        }
    }
}
