//! A receiver of OpenTelemetry logs, by OTLP over HTTP in protobuf: `POST /v1/logs`.
//!
//! The messages are declared in `otlp/proto.rs`, and `prost` encodes them. The logger of a record is its scope.
//!
//! OTLP has no ids for records, so a repeated request can deliver records twice.

mod convert;
mod proto;

use std::collections::BTreeMap;
use std::io;

use prost::Message;
use serde_json::{Map, Value};

use super::http::shapes::PairList;
use super::http::{
    self, BatchVerdict, HttpAddress, HttpAnswer, HttpFormat, HttpHeaders, HttpRecord, HttpSink, RecordOutcome,
};
use super::parts::RecordParts;
use super::{Place, SinkOptions, Traits};
use crate::sink::Sink;
use convert::{attribute, log_record};
use logspool_record::definition::Descriptor;
use proto::{
    AnyKind, ExportRequest, ExportResponse, InstrumentationScope, LogRecord, PartialSuccess, Resource, ResourceLogs,
    ScopeLogs,
};

const PATH: &str = "/v1/logs";

http::options! {
    /// Sends records to an OpenTelemetry Collector, or to another receiver of OTLP over HTTP.
    pub struct OtlpOptions {
        /// `http://host:port` or `https://host:port`; `/v1/logs` is added.
        pub address: HttpAddress,
        /// Value of the resource attribute `service.name`.
        pub service_name: String = Text("unknown_service"),
        /// More resource attributes: `deployment.environment.name=prod,service.version=1.2`.
        pub resource: PairList = Text(""),
        /// More headers, one `Name: value` a line.
        pub headers: Option<HttpHeaders> = Nothing,
    }
}

impl SinkOptions for OtlpOptions {
    const KIND: &'static str = "otlp";
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
            service_name: "shop".to_owned(),
            resource: PairList(vec![("service.version".to_owned(), "1.2".to_owned())]),
        )]
    }
}

impl HttpFormat for OtlpOptions {
    fn content_type(&self) -> &'static str {
        "application/x-protobuf"
    }

    fn encode(&self, records: &[HttpRecord<'_>], _: &str) -> Vec<u8> {
        // A recoverer sends the records of another process, so the resource is that of the records.
        let mut resources: BTreeMap<(String, Option<i64>), BTreeMap<String, Vec<LogRecord>>> = BTreeMap::new();
        for record in records {
            let parts = RecordParts::read(record.entry);
            let scopes = resources.entry((parts.host.clone().into_owned(), parts.process)).or_default();
            scopes.entry(parts.logger.clone().into_owned()).or_default().push(log_record(&parts));
        }
        let resource_logs = resources.into_iter().map(|((host, process), scopes)| ResourceLogs {
            resource: Some(self.resource(&host, process)),
            scope_logs: scopes
                .into_iter()
                .map(|(name, log_records)| ScopeLogs { scope: Some(InstrumentationScope { name }), log_records })
                .collect(),
        });
        ExportRequest { resource_logs: resource_logs.collect() }.encode_to_vec()
    }

    fn judge(&self, answer: &HttpAnswer, records: usize) -> BatchVerdict {
        let Some(partial) = partial_success(answer) else {
            return BatchVerdict::Unreadable(answer.of_another_kind("OTLP"));
        };
        let rejected = usize::try_from(partial.rejected_log_records).unwrap_or(0).min(records);
        if rejected == 0 {
            return BatchVerdict::Accepted;
        }
        // The answer does not say which records were rejected, so only their number is right.
        let outcome = |position| if position < rejected { RecordOutcome::Refused } else { RecordOutcome::Accepted };
        let why = format!("the receiver rejects {rejected} of {records} records: {}", partial.error_message);
        BatchVerdict::Each((0..records).map(outcome).collect(), why.chars().take(400).collect())
    }
}

/// What an answer with a status of success says about rejected records. `None`: it is no answer of OTLP.
///
/// An empty body is the answer in protobuf without any rejected record. JSON is read whether or not the answer names
/// it, since protobuf cannot begin with a brace.
fn partial_success(answer: &HttpAnswer) -> Option<PartialSuccess> {
    if answer.body.is_empty() {
        return (!answer.is_of_type("html")).then(PartialSuccess::default);
    }
    if let Ok(object) = serde_json::from_slice::<Map<String, Value>>(&answer.body) {
        let given = ["partialSuccess", "partial_success"].iter().find_map(|name| object.get(*name));
        let part = |names: [&str; 2]| names.iter().find_map(|name| given?.get(name));
        // JSON in the form of protobuf has numbers of 64 bits as text.
        let rejected = part(["rejectedLogRecords", "rejected_log_records"])
            .map_or(Some(0), |number| number.as_i64().or_else(|| number.as_str()?.parse().ok()));
        let message = part(["errorMessage", "error_message"]).and_then(Value::as_str).unwrap_or_default();
        return rejected
            .map(|rejected_log_records| PartialSuccess { rejected_log_records, error_message: message.to_owned() });
    }
    let may_be_protobuf = answer.content_type.is_none() || answer.is_of_type("protobuf");
    let response = ExportResponse::decode(&answer.body[..]).ok().filter(|_| may_be_protobuf)?;
    Some(response.partial_success.unwrap_or_default())
}

impl OtlpOptions {
    fn resource(&self, host: &str, process: Option<i64>) -> Resource {
        let mut attributes = vec![attribute("service.name", AnyKind::Text(self.service_name.clone()))];
        if !host.is_empty() {
            attributes.push(attribute("host.name", AnyKind::Text(host.to_owned())));
        }
        if let Some(process) = process {
            attributes.push(attribute("process.pid", AnyKind::Int(process)));
        }
        for (name, value) in &self.resource.0 {
            attributes.retain(|given| given.key != *name);
            attributes.push(attribute(name, AnyKind::Text(value.clone())));
        }
        Resource { attributes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::parts::tests::entry;

    fn options() -> OtlpOptions {
        OtlpOptions::samples("/sample", -1).remove(0)
    }

    #[test]
    fn records_are_grouped_by_process_and_logger() {
        let entries = [("1", "a"), ("2", "a"), ("1", "b"), ("1", "a")].map(|(process, logger)| {
            entry(&[("logger", logger), ("process", process), ("host", "web"), ("message", "m")])
        });
        let records: Vec<_> = entries.iter().map(|entry| HttpRecord { entry, number: 1 }).collect();
        let request = ExportRequest::decode(&options().encode(&records, "")[..]).unwrap();

        let counts: Vec<Vec<_>> = request
            .resource_logs
            .iter()
            .map(|logs| {
                let scope = |scope: &ScopeLogs| (scope.scope.clone().unwrap().name, scope.log_records.len());
                logs.scope_logs.iter().map(scope).collect()
            })
            .collect();
        assert_eq!(vec![vec![("a".to_owned(), 2), ("b".to_owned(), 1)], vec![("a".to_owned(), 1)]], counts);
        let expected = [
            attribute("service.name", AnyKind::Text("shop".to_owned())),
            attribute("host.name", AnyKind::Text("web".to_owned())),
            attribute("process.pid", AnyKind::Int(1)),
            attribute("service.version", AnyKind::Text("1.2".to_owned())),
        ];
        assert_eq!(expected[..], request.resource_logs[0].resource.clone().unwrap().attributes);
    }

    fn judge(kind: &str, body: &[u8]) -> BatchVerdict {
        let content_type = (!kind.is_empty()).then(|| kind.to_owned());
        let answer = HttpAnswer { status: 200, retry_after: None, location: None, content_type, body: body.to_vec() };
        options().judge(&answer, 3)
    }

    #[test]
    fn rejected_records_are_counted() {
        let partial = |rejected_log_records| {
            let error_message = "too old".to_owned();
            ExportResponse { partial_success: Some(PartialSuccess { rejected_log_records, error_message }) }
                .encode_to_vec()
        };
        let (json, protobuf) = ("application/json", "application/x-protobuf");
        let full = |name: &str| format!(r#"{{"{name}":{{"rejectedLogRecords":"2","errorMessage":"too old"}}}}"#);
        let number = br#"{"partialSuccess":{"rejectedLogRecords":2,"errorMessage":"too old"}}"#;
        for (kind, body) in [
            ("", Vec::new()),
            (protobuf, Vec::new()),
            (protobuf, partial(0)),
            (protobuf, partial(-1)),
            (json, b"{}".to_vec()),
            ("", b"{}".to_vec()),
            (json, br#"{"partialSuccess":{}}"#.to_vec()),
            (json, br#"{"partialSuccess":{"errorMessage":"a warning"}}"#.to_vec()),
        ] {
            assert_eq!(BatchVerdict::Accepted, judge(kind, &body), "{kind} {body:?}");
        }
        for (kind, body) in [
            (protobuf, partial(2)),
            (json, full("partialSuccess").into_bytes()),
            (json, full("partial_success").into_bytes()),
            (json, number.to_vec()),
        ] {
            let BatchVerdict::Each(outcomes, why) = judge(kind, &body) else { panic!("two are rejected: {body:?}") };
            assert_eq!([RecordOutcome::Refused, RecordOutcome::Refused, RecordOutcome::Accepted], *outcomes);
            assert_eq!("the receiver rejects 2 of 3 records: too old", why);
        }
    }

    #[test]
    fn an_answer_that_is_not_of_this_interface_accepts_nothing() {
        let page = b"<html><form action=login>";
        for (kind, body) in [
            ("text/html", &page[..]),
            ("text/html", b""),
            ("", page),
            ("text/plain", b"please log in"),
            ("application/json", b"[]"),
            ("application/json", br#"{"partialSuccess":{"rejectedLogRecords":"many"}}"#),
        ] {
            let BatchVerdict::Unreadable(why) = judge(kind, body) else { panic!("{kind} {body:?} is accepted") };
            assert!(why.contains("(fix: address, "), "{why}");
        }
    }
}
