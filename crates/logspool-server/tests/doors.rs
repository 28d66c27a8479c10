//! Bodies of the senders of other services: whatever their bytes are, they are records or an error.

use logspool_server::decoders::{elastic, journal, loki, seq, splunk};

/// Reads a body with every decoder. Returns the number of records.
fn read(body: &[u8]) -> usize {
    let mut records = 0;
    let each: loki::EachEntry<'_> = &mut |found| records += usize::from(found.is_ok());
    drop(loki::read_json(body, each));
    drop(loki::read_protobuf(body, 1 << 20, each));
    records += usize::from(elastic::document(body, "logs").is_ok()) + usize::from(elastic::action(body).is_some());
    records += usize::from(seq::read_clef(body).is_ok()) + usize::from(seq::read_raw(body).is_ok());
    drop(splunk::objects(body, |object| records += usize::from(splunk::read(object).is_ok())));
    if let journal::EntryScan::Complete(length) = journal::scan(body) {
        records += usize::from(matches!(journal::read(&body[..length]), Ok(Some(_))));
    }
    records
}

#[test]
fn a_body_with_any_byte_changed_or_cut_off_is_records_or_an_error() {
    // A stream of Loki in protobuf, compressed by snappy: `{a="b"}` with the line `paid` at 5 s.
    let loki = b"\x1c\x6c\x0a\x1a\x0a\x07{a=\"b\"}\x12\x0f\x0a\x04\x08\x05\x10\x07\x12\x04paid\x1a\x01";
    let bodies: [&[u8]; 6] = [
        loki,
        br#"{"streams":[{"stream":{"a":"b"},"values":[["1700000000125000001","paid",{"c":"d"}]]}]}"#,
        br#"{"create":{"_index":"logs","_id":"1"}}"#,
        br#"{"@t":"2023-11-14T22:13:20Z","@mt":"{A} {B:000} {{","@l":"Error","A":[1],"@@b":{"c":null}}"#,
        br#"{"time":"1700000000.125","event":{"line":"x"},"fields":{"a":1}}{"event":"{\"message\":\"y\"}"}"#,
        b"__REALTIME_TIMESTAMP=1700000000125000\nMESSAGE\n\x03\0\0\0\0\0\0\0a\nb\nPRIORITY=3\n\n",
    ];
    for body in &bodies[1..] {
        assert!(read(body) > 0, "{}", body.escape_ascii());
    }
    for body in bodies {
        for length in 0..body.len() {
            read(&body[..length]);
        }
        let mut body = body.to_vec();
        for at in 0..body.len() {
            let before = body[at];
            for changed in [0, 0xFF, 0x7F, b'"', b'{', b'}', b'\n', before ^ 1, before ^ 0x80] {
                body[at] = changed;
                read(&body);
            }
            body[at] = before;
        }
    }
}
