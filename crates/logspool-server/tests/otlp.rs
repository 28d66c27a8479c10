//! OpenTelemetry logs: requests of its SDKs (`corpus/make_otlp.py`, `corpus/make_otlp.mjs`), and invalid requests.

use crate::corpus_lines;

use corpus_lines::cases;
use logspool_server::decoders::otlp::{self, Encoding, OtlpError, OtlpLimits, RejectedRecords, UnreadableRecord};
use logspool_server::record::Record;
use serde_json::json;

const PROTOBUF: &str = include_str!("corpus/otlp-python.txt");
const JSON: &str = include_str!("corpus/otlp-node.txt");

type Each<'e, 'a> = &'e mut dyn FnMut(Result<Record<'a>, UnreadableRecord<'a>>);

/// All records. A record that cannot be read is an error.
fn whole<'a>(read: impl FnOnce(Each<'_, 'a>) -> Result<(), OtlpError>) -> Result<serde_json::Value, OtlpError> {
    let (mut records, mut unread) = (Vec::new(), None);
    read(&mut |record| match record {
        Ok(record) => records.push(serde_json::to_value(&record).unwrap()),
        Err(UnreadableRecord { error, .. }) => unread = Some(error),
    })?;
    unread.map_or(Ok(records.into()), Err)
}

fn protobuf(body: &[u8]) -> Result<serde_json::Value, OtlpError> {
    protobuf_within(body, &OtlpLimits::default())
}

fn protobuf_within(body: &[u8], limits: &OtlpLimits) -> Result<serde_json::Value, OtlpError> {
    whole(|each| otlp::read_protobuf(body, limits, each))
}

fn json_of(body: &[u8]) -> Result<serde_json::Value, OtlpError> {
    whole(|each| otlp::read_json(body, &OtlpLimits::default(), each))
}

#[test]
fn requests_of_the_sdks_are_read() {
    let (mut in_protobuf, mut in_json) = (0, 0);
    for (name, body, expected) in cases(PROTOBUF) {
        assert_eq!(expected, protobuf(&body).unwrap(), "{name}");
        in_protobuf += 1;
    }
    for (name, body, expected) in cases(JSON) {
        assert_eq!(expected, json_of(&body).unwrap(), "{name}");
        in_json += 1;
    }
    assert!(in_protobuf >= 5 && in_json >= 3, "{in_protobuf} and {in_json} cases");
}

#[test]
fn a_body_with_any_byte_changed_or_cut_off_is_records_or_an_error() {
    for (_, mut body, _) in cases(PROTOBUF).chain(cases(JSON)) {
        for length in 0..body.len() {
            drop(protobuf(&body[..length]));
            drop(json_of(&body[..length]));
        }
        for at in 0..body.len() {
            let before = body[at];
            for changed in [0, 0xFF, 0x7F, b'"', b'{', before ^ 1, before ^ 0x80] {
                body[at] = changed;
                drop(protobuf(&body));
                drop(json_of(&body));
            }
            body[at] = before;
        }
    }
}

/// The messages of the records that can be read, and the number of parts that cannot.
fn partly<'a>(read: impl FnOnce(Each<'_, 'a>) -> Result<(), OtlpError>) -> (Vec<String>, usize) {
    let (mut messages, mut unread) = (Vec::new(), 0);
    read(&mut |record| match record {
        Ok(record) => messages.push(record.message.into_owned()),
        Err(UnreadableRecord { .. }) => unread += 1,
    })
    .unwrap();
    (messages, unread)
}

#[test]
fn a_broken_part_of_a_json_body_costs_only_itself() {
    let logs = |message: &str| format!(r#"{{"logRecords":[{{"body":{{"stringValue":"{message}"}}}}]}}"#);
    let (one, two) = (logs("one"), logs("two"));
    for broken in [
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{one}]}},5,{{"scopeLogs":[{two}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{one}]}},{{"scopeLogs":{{}}}},{{"scopeLogs":[{two}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{one},{{"message":"lost"}},{two}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{one},{{"logRecords":"x"}},{two}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{"resource":"broken","scopeLogs":[{one},{two}]}}]}}"#),
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"scope":7,{},{two}]}}]}}"#, &one[1..]),
    ] {
        let found = partly(|each| otlp::read_json(broken.as_bytes(), &OtlpLimits::default(), each));
        assert_eq!((vec!["one".to_owned(), "two".to_owned()], 1), found, "{broken}");
    }
}

#[test]
fn a_broken_part_of_a_protobuf_body_costs_only_itself() {
    let logs = |message: &str| field(2, &field(2, &field(5, &text(message))));
    let (one, two) = (logs("one"), logs("two"));
    let broken = b"\x0A\x7Fcut";
    for body in [
        [field(1, &one), field(1, broken), field(1, &two)].concat(),
        [field(1, &one), field(1, &two), b"\x0A\x7Fcut".to_vec()].concat(),
        field(1, &[one.clone(), two.clone(), b"\x12\x7Fcut".to_vec()].concat()),
        field(1, &[one.clone(), field(2, b"\x12\x7Fcut"), two.clone()].concat()),
        field(1, &[field(1, broken), one.clone(), two.clone()].concat()),
        field(1, &[one.clone(), field(2, &[field(1, broken), field(2, &field(5, &text("two")))].concat())].concat()),
    ] {
        let found = partly(|each| otlp::read_protobuf(&body, &OtlpLimits::default(), each));
        assert_eq!((vec!["one".to_owned(), "two".to_owned()], 1), found, "{body:?}");
    }
    assert!(protobuf(b"\x0A\x7Fcut").is_err());
}

/// A field with a length: a message, text or bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut to = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        to.push(length as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
    to.extend(content);
    to
}

/// A request with one resource with these attributes, and one scope with these records.
fn request(resource: &[Vec<u8>], records: &[Vec<u8>]) -> Vec<u8> {
    let attributes: Vec<u8> = resource.iter().flat_map(|pair| field(1, pair)).collect();
    let records: Vec<u8> = records.iter().flat_map(|record| field(2, record)).collect();
    // The resource comes after its records, which is valid.
    field(1, &[field(2, &records), field(1, &attributes)].concat())
}

fn pair(name: &str, value: &[u8]) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, value)].concat()
}

fn text(text: &str) -> Vec<u8> {
    field(1, text.as_bytes())
}

#[test]
fn json_and_protobuf_give_the_same_records() {
    let record = [
        field(5, &text("m")),
        vec![0x10, 18],
        field(3, b"Loud"),
        b"\x59\x05\0\0\0\0\0\0\0".to_vec(),
        field(6, &pair("exception.type", &text("ValueError"))),
        field(6, &pair("exception.message", &text("no"))),
        field(6, &pair("thread.id", b"\x18\x07")),
        field(6, &pair("thread.name", &text("T"))),
        field(6, &pair("code.lineno", b"\x18\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")),
        field(6, &pair("list", &field(5, &[field(1, b"\x10\x01"), field(1, b"")].concat()))),
        field(9, &[0xAB; 16]),
        field(10, &[0; 8]),
        field(12, b"clicked"),
    ];
    let expected = json!([{
        "time_ns": 5, "level": 40, "logger": "", "message": "m", "host": "h", "thread": 7, "thread_name": "T",
        "exception": "ValueError: no", "trace_id": "ab".repeat(16),
        "fields": {
            "severity_text": "Loud", "code.lineno": -1, "list": [true, null], "event_name": "clicked",
            "service.name": "shop",
        },
    }]);
    let body = request(&[pair("service.name", &text("shop")), pair("host.name", &text("h"))], &[record.concat()]);
    assert_eq!(expected, protobuf(&body).unwrap());

    let pairs = r#"{"key":"exception.type","value":{"stringValue":"ValueError"}},
        {"key":"exception.message","value":{"stringValue":"no"}},{"key":"thread.id","value":{"intValue":"7"}},
        {"key":"thread.name","value":{"stringValue":"T"}},{"key":"code.lineno","value":{"intValue":-1}},
        {"key":"list","value":{"arrayValue":{"values":[{"boolValue":true},{}]}}}"#;
    let body = format!(
        r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{{"stringValue":"m"}},"severityNumber":18,
        "severityText":"Loud","observedTimeUnixNano":"5","timeUnixNano":0,"traceId":"{}","spanId":"0000000000000000",
        "eventName":"clicked","unknown":[{{}}],"attributes":[{pairs}]}}]}}],"unknown":1,
        "resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}},
        {{"key":"host.name","value":{{"stringValue":"h"}}}}]}}}}]}}"#,
        "ab".repeat(16)
    );
    assert_eq!(expected, json_of(body.as_bytes()).unwrap());
}

#[test]
fn severities_are_levels() {
    let levels = [0, 1, 4, 5, 9, 13, 17, 21, 24, 25].map(|severity| {
        let found = protobuf(&request(&[], &[vec![0x10, severity]])).unwrap();
        found[0]["level"].as_u64().unwrap()
    });
    assert_eq!([0, 5, 5, 10, 20, 30, 40, 50, 50, 0], levels);
    assert_eq!(30, protobuf(&request(&[], &[field(3, b"WARN")])).unwrap()[0]["level"]);
}

#[test]
fn json_values_are_read_in_all_their_forms() {
    let value = |value: &str| {
        let body = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[
            {{"attributes":[{{"key":"v","value":{value}}}]}}]}}]}}]}}"#
        );
        json_of(body.as_bytes()).unwrap()[0]["fields"]["v"].take()
    };
    assert_eq!(json!(9_007_199_254_740_993_i64), value(r#"{"intValue":"9007199254740993"}"#));
    assert_eq!(json!("x"), value(r#"{"intValue":"x"}"#));
    assert_eq!(json!(2.0), value(r#"{"doubleValue":2}"#));
    assert_eq!(json!("inf"), value(r#"{"doubleValue":"Infinity"}"#));
    assert_eq!(json!("eHk="), value(r#"{"bytesValue":"eHk="}"#));
    assert_eq!(
        json!({"a": {"b": []}}),
        value(
            r#"{"kvlistValue":{"values":[{"key":"a","value":{"kvlistValue":{"values":[
            {"key":"b","value":{"arrayValue":{}}}]}}}]}}"#
        )
    );
    for nothing in ["{}", "null", "[]", r#"{"newValue":1}"#] {
        assert_eq!(json!(null), value(nothing), "{nothing}");
    }
}

#[test]
fn an_empty_request_has_no_records_and_other_bytes_are_not_a_request() {
    for empty in ["{}", r#"{"resourceLogs":null}"#, r#"{"resourceLogs":[{"resource":null,"scopeLogs":[{}]}]}"#] {
        assert_eq!(json!([]), json_of(empty.as_bytes()).unwrap());
    }
    assert_eq!(json!([]), protobuf(&Encoding::Protobuf.success(&RejectedRecords::default())).unwrap());
    assert_eq!(json!([]), json_of(&Encoding::Json.success(&RejectedRecords::default())).unwrap());
    for none in [
        "",
        "[",
        "[1]",
        "[[]]",
        r#"{"message":"lost"}"#,
        r#"{"resourceLogs":1}"#,
        r#"{"resourceLogs":[1]}"#,
        r#"{"resourceLogs":[[]]}"#,
        r#"{"resourceLogs":[{"instrumentationLibraryLogs":[]}]}"#,
        r#"{"resourceLogs":[{"scopeLogs":[{"logs":[]}]}]}"#,
    ] {
        assert!(json_of(none.as_bytes()).is_err(), "{none}");
    }
    // A field of another message.
    assert!(matches!(protobuf(b"\x12\x01x"), Err(OtlpError::Unknown(_))));
    let other =
        br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"message":"lost"},{"body":{"stringValue":"m"}}]}]}]}"#;
    let mut read = Vec::new();
    otlp::read_json(other, &OtlpLimits::default(), |record| read.push(record.is_ok())).unwrap();
    assert_eq!(vec![false, true], read);
    assert_eq!(
        "the body is not protobuf with log records: it is truncated",
        protobuf(b"\x0A\x05").unwrap_err().to_string()
    );
}

#[test]
fn names_with_underscores_are_read() {
    let body = br#"{"resource_logs":[{"scope_logs":[{"log_records":[
        {"time_unix_nano":"5","severity_number":17,"body":{"stringValue":"m"},"trace_id":"0a"}]}]}]}"#;

    let record = json!({"time_ns": 5, "level": 40, "logger": "", "message": "m", "trace_id": "0a"});
    assert_eq!(json!([record]), json_of(body).unwrap());
}

#[test]
fn memory_is_bounded_whatever_is_sent() {
    let limits = OtlpLimits { items: 100, repeated: 10_000 };
    // Records of no bytes with a large resource.
    let body = request(&[pair("k8s", &text(&"x".repeat(1000)))], &vec![Vec::new(); 11]);
    assert!(matches!(protobuf_within(&body, &limits), Err(OtlpError::TooLarge)));
    // Records of no bytes: each takes a row.
    assert!(protobuf_within(&request(&[], &vec![Vec::new(); 50]), &limits).is_ok());
    assert!(matches!(protobuf_within(&request(&[], &vec![Vec::new(); 100]), &limits), Err(OtlpError::TooLarge)));
    let body = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}{{}}]}}]}}]}}"#, "{},".repeat(99));
    assert!(matches!(whole(|each| otlp::read_json(body.as_bytes(), &limits, each)), Err(OtlpError::TooLarge)));
    // Values of no bytes.
    let values: Vec<u8> = vec![field(1, b""); 101].concat();
    let body = request(&[], &[field(5, &field(5, &values))]);
    assert!(matches!(protobuf_within(&body, &limits), Err(OtlpError::TooMany)));
    // Lists in lists.
    let deep = (0..1000).fold(text("x"), |value, _| field(5, &field(1, &value)));
    let found = protobuf(&request(&[], &[field(5, &deep)])).unwrap();
    assert_eq!(format!("{}\"...\"{}", "[".repeat(32), "]".repeat(32)), found[0]["message"]);
}

#[test]
fn an_unreadable_record_is_rejected_alone() {
    let limits = OtlpLimits { items: 3, ..OtlpLimits::default() };
    let good = field(5, &text("good"));
    let cut = b"\x2A\x05".to_vec();
    let many = (0..4).map(|_| field(6, &pair("k", &text("v")))).collect::<Vec<_>>().concat();
    let body = request(&[], &[good.clone(), cut.clone(), many.clone(), good]);
    let mut read = Vec::new();
    otlp::read_protobuf(&body, &limits, |record| {
        read.push(match record {
            Ok(record) => (record.message.into_owned(), Vec::new()),
            Err(unread) => (unread.error.to_string(), unread.bytes.to_vec()),
        });
    })
    .unwrap();

    assert_eq!(
        vec![
            ("good".to_owned(), Vec::new()),
            ("the body is not protobuf with log records: it is truncated".to_owned(), cut),
            ("a log record or its resource has too many values".to_owned(), many),
            ("good".to_owned(), Vec::new()),
        ],
        read
    );
    let json = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"a"}},7,{"body":{"stringValue":"b"}}]}]}]}"#;
    let mut read = Vec::new();
    otlp::read_json(json, &limits, |record| {
        read.push(record.map(|record| record.message.into_owned()).map_err(|unread| unread.bytes.to_vec()));
    })
    .unwrap();
    assert_eq!(vec![Ok("a".to_owned()), Err(b"7".to_vec()), Ok("b".to_owned())], read);
}
