//! Fluent Forward: messages of existing loggers (`corpus/make_forward.py`, `corpus/make_forward.mjs`), and invalid
//! messages.

use crate::corpus_lines;

use std::io::Write;

use corpus_lines::cases;
use flate2::Compression;
use flate2::write::GzEncoder;
use logspool_server::decoders::forward::handshake::{
    Challenge, HandshakeAnswer, HandshakeClient, HandshakeServer, PongError,
};
use logspool_server::decoders::forward::{
    self, ForwardError, ForwardLimits, ForwardProblem, ReadProgress, RecordFlow, ScannedFrame, Scanner,
};
use logspool_server::record::Record;
use rmp::encode;
use serde_json::json;

const PYTHON: &str = include_str!("corpus/forward-python.txt");
const NODE: &str = include_str!("corpus/forward-node.txt");
const HANDSHAKE: &str = include_str!("corpus/handshake-node.txt");

/// A message with all its records, as JSON.
fn read(frame: &[u8]) -> Result<serde_json::Value, ForwardError> {
    read_within(frame, &ForwardLimits::default())
}

fn read_within(frame: &[u8], limits: &ForwardLimits) -> Result<serde_json::Value, ForwardError> {
    let message = forward::read(frame, limits)?;
    let mut records = Vec::new();
    message.records(&mut Vec::new(), limits.expanded_entry, 0).read(|record| {
        records.push(json!(record));
        RecordFlow::Continue
    })?;
    let mut found = json!({"tag": message.tag, "records": records});
    if let Some(chunk) = &message.chunk {
        found["chunk"] = json!(chunk);
    }
    Ok(found)
}

fn problem(frame: &[u8]) -> ForwardProblem {
    read(frame).unwrap_err().problem
}

#[test]
fn messages_of_fluent_loggers_are_read() {
    for (file, least) in [(PYTHON, 5), (NODE, 5)] {
        let mut count = 0;
        for (name, frame, expected) in cases(file) {
            let complete = Scanner::default().frame(&frame, &ForwardLimits::default()).unwrap();
            let found = read(&frame).unwrap_or_else(|error| panic!("{name}: {error}"));

            assert_eq!(ScannedFrame::Complete { length: frame.len() }, complete, "{name}");
            assert_eq!(expected, found, "{name}");
            count += 1;
        }
        assert!(count >= least, "{count} cases");
    }
}

#[test]
fn a_message_that_is_cut_off_anywhere_is_incomplete_and_an_error() {
    for (name, frame, _) in cases(PYTHON).chain(cases(NODE)).filter(|(_, frame, _)| frame.len() < 5000) {
        for length in 0..frame.len() {
            let cut = Scanner::default().frame(&frame[..length], &ForwardLimits::default()).unwrap();
            assert_eq!(ScannedFrame::Incomplete, cut, "{name}, {length} bytes");
            assert!(read(&frame[..length]).is_err(), "{name}, {length} bytes");
        }
    }
}

#[test]
fn a_message_with_any_byte_changed_is_a_message_or_an_error() {
    for (_, mut frame, _) in cases(PYTHON).chain(cases(NODE)).filter(|(_, frame, _)| frame.len() < 2000) {
        for at in 0..frame.len() {
            let before = frame[at];
            for changed in [0, 0xFF, 0xC0, 0xC1, 0xDB, 0xDD, 0xDF, before ^ 1, before ^ 0x80] {
                frame[at] = changed;
                drop(Scanner::default().frame(&frame, &ForwardLimits::default()));
                drop(read(&frame));
            }
            frame[at] = before;
        }
    }
}

#[test]
fn messages_that_arrive_in_pieces_are_found_in_order() {
    let frames: Vec<_> = cases(PYTHON).chain(cases(NODE)).map(|(_, frame, _)| frame).collect();
    let stream = frames.concat();
    for piece in [1, 2, 7, 1000, stream.len()] {
        let (mut scanner, mut begin, mut found) = (Scanner::default(), 0, Vec::new());
        for end in (piece..stream.len() + piece).step_by(piece) {
            let end = end.min(stream.len());
            while let ScannedFrame::Complete { length } =
                scanner.frame(&stream[begin..end], &ForwardLimits::default()).unwrap()
            {
                found.push(stream[begin..begin + length].to_vec());
                begin += length;
            }
        }

        assert!(frames == found, "pieces of {piece} bytes: {} of {} messages", found.len(), frames.len());
    }
}

#[test]
fn a_scanner_looks_at_each_byte_once() {
    // A megabyte of small values, received byte by byte, would take hours if every byte started a new scan.
    let mut frame = vec![0xDD];
    frame.extend(1_000_000_u32.to_be_bytes());
    frame.resize(1_000_005, 0xC0);
    let mut scanner = Scanner::default();
    for end in 0..frame.len() {
        assert_eq!(ScannedFrame::Incomplete, scanner.frame(&frame[..end], &ForwardLimits::default()).unwrap());
    }

    assert_eq!(
        ScannedFrame::Complete { length: frame.len() },
        scanner.frame(&frame, &ForwardLimits::default()).unwrap()
    );
}

#[test]
fn an_invalid_or_long_message_is_refused_before_it_is_buffered() {
    let limits = ForwardLimits { frame: 1000, ..ForwardLimits::default() };
    let first = |bytes: &[u8]| Scanner::default().frame(bytes, &limits).map_err(|error| error.problem);

    for text in ["{\"a\":1}", "<14>text", "GET / HTTP/1.1", "\u{0}\u{0}\u{2}"] {
        assert!(matches!(first(text.as_bytes()), Err(ForwardProblem::Unexpected(_))), "{text}");
    }
    // A list of more values than the message may have bytes.
    assert!(matches!(first(b"\xDD\xFF\xFF\xFF\xFF"), Err(ForwardProblem::TooLong(1000))));
    let long = [b"\x92\xA1t\xDB\xFF\xFF\xFF\xFF".to_vec(), vec![0; 1000]].concat();
    assert!(matches!(first(&long), Err(ForwardProblem::TooLong(1000))));
    // It is also refused when all bytes arrive at once.
    assert!(matches!(first(&list(&[b"\xA1t", &bin(&[0; 1000])])), Err(ForwardProblem::TooLong(1000))));
    assert!(matches!(first(b"\x91\xC1"), Err(ForwardProblem::Malformed)));
}

/// `[tag, second, ...]` of encoded parts.
fn list(parts: &[&[u8]]) -> Vec<u8> {
    let mut to = Vec::new();
    encode::write_array_len(&mut to, parts.len() as u32).unwrap();
    to.extend(parts.concat());
    to
}

fn text(text: &str) -> Vec<u8> {
    let mut to = Vec::new();
    encode::write_str(&mut to, text).unwrap();
    to
}

fn bin(bytes: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    encode::write_bin(&mut to, bytes).unwrap();
    to
}

fn map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut to = Vec::new();
    encode::write_map_len(&mut to, pairs.len() as u32).unwrap();
    pairs.iter().for_each(|(name, value)| to.extend([text(name), value.clone()].concat()));
    to
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn entry(message: &str) -> Vec<u8> {
    list(&[b"\x05", &map(&[("message", text(message))])])
}

#[test]
fn the_four_modes_give_the_same_records() {
    let (first, second) = (entry("first"), entry("second"));
    let packed = [&first[..], &second].concat();
    let compressed = [gzip(&first), gzip(&second)].concat();
    let gzipped = map(&[("compressed", text("gzip")), ("size", vec![2])]);
    let record = |message| json!({"time_ns": 5_000_000_000_i64, "level": 0, "logger": "t", "message": message});
    let both = json!({"tag": "t", "records": [record("first"), record("second")]});

    assert_eq!(both, read(&list(&[b"\xA1t", &list(&[&first, &second])])).unwrap());
    assert_eq!(both, read(&list(&[b"\xA1t", &bin(&packed)])).unwrap());
    assert_eq!(both, read(&list(&[b"\xA1t", &bin(&packed), b"\xC0"])).unwrap());
    assert_eq!(both, read(&list(&[b"\xA1t", &bin(&compressed), &gzipped])).unwrap());
    let zstd = [zstd::encode_all(&first[..], 3).unwrap(), zstd::encode_all(&second[..], 3).unwrap()].concat();
    assert_eq!(both, read(&list(&[b"\xA1t", &bin(&zstd), &map(&[("compressed", text("zstd"))])])).unwrap());
    assert_eq!(
        json!({"tag": "t", "records": [record("first")]}),
        read(&list(&[b"\xA1t", b"\x05", &map(&[("message", text("first"))])])).unwrap()
    );
    // Fluentd's heartbeat.
    assert_eq!(json!({"tag": "", "records": []}), read(b"\xC0").unwrap());
}

#[test]
fn an_ack_returns_the_id_unchanged() {
    for id in [text("abc"), bin(b"\xFF\x00"), text("s/1/1-0")] {
        let options = map(&[("chunk", id.clone()), ("end", vec![0xC3])]);
        let frame = list(&[b"\xA1t", b"\x90", &options]);
        let message = forward::read(&frame, &ForwardLimits::default()).unwrap();

        assert_eq!(Some(map(&[("ack", id)])), message.ack());
        assert!(message.end);
    }
    assert_eq!(None, forward::read(b"\x92\xA1t\x90", &ForwardLimits::default()).unwrap().ack());
}

#[test]
fn times_are_read_in_all_their_forms() {
    let time = |bytes: &[u8]| read(&list(&[b"\xA1t", bytes, b"\x80"])).unwrap()["records"][0]["time_ns"].as_i64();

    assert_eq!(Some(1_700_000_000_125_000_000), time(b"\xD7\x00\x65\x53\xF1\x00\x07\x73\x59\x40"));
    assert_eq!(Some(1_700_000_000_125_000_000), time(b"\xC7\x08\x00\x65\x53\xF1\x00\x07\x73\x59\x40"));
    assert_eq!(Some(1_700_000_000_000_000_000), time(b"\xCE\x65\x53\xF1\x00"));
    assert_eq!(Some(1_700_000_000_125_000_000), time(b"\xCB\x41\xD9\x54\xFC\x40\x08\x00\x00"));
    assert_eq!(Some(1_700_000_000_000_000_000), time(b"\xD6\xFF\x65\x53\xF1\x00"));
    assert_eq!([None; 3], [time(b"\x00"), time(b"\xC0"), time(b"\xCF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF")]);
    assert!(matches!(problem(b"\x93\xA1t\xC3\x80"), ForwardProblem::Unexpected("a time")));

    // Fluent Bit's newer entries have a map beside the time.
    let entry = list(&[&list(&[b"\x05", b"\x81\xA1a\x91\x01"]), b"\x80"]);
    assert_eq!(5_000_000_000_i64, read(&list(&[b"\xA1t", &bin(&entry)])).unwrap()["records"][0]["time_ns"]);
}

#[test]
fn a_message_from_docker_has_its_container() {
    let record = map(&[
        ("container_id", text("e5b4")),
        ("container_name", text("/web")),
        ("source", text("stderr")),
        ("log", text("listening")),
    ]);

    assert_eq!(
        json!({"tag": "e5b4", "records": [{
            "time_ns": 5_000_000_000_i64, "level": 0, "logger": "e5b4", "message": "listening",
            "fields": {"container_id": "e5b4", "container_name": "/web", "source": "stderr"},
        }]}),
        read(&list(&[&text("e5b4"), b"\x05", &record, b"\x80"])).unwrap()
    );
}

#[test]
fn odd_values_lose_nothing() {
    let deep = [vec![0x91; 1000], vec![0xC0]].concat();
    let record = [
        b"\x88".to_vec(),
        [text("message"), b"\x05".to_vec()].concat(),
        [text("log"), bin(b"caf\xE9")].concat(),
        [text("msg"), text("second")].concat(),
        [text("name"), text("own")].concat(),
        [b"\x07".to_vec(), text("a number as a key")].concat(),
        [text("when"), b"\xD7\x00\x65\x53\xF1\x00\x07\x73\x59\x40".to_vec()].concat(),
        [text("other"), b"\xD4\x05x".to_vec()].concat(),
        [text("deep"), deep].concat(),
    ];
    let mut found = read(&list(&[b"\xA1t", b"\x05", &record.concat()])).unwrap();
    let shown = found["records"][0]["fields"]["deep"].take().to_string();

    assert_eq!(
        json!({"tag": "t", "records": [{
            "time_ns": 5_000_000_000_i64, "level": 0, "logger": "own", "message": "second",
            "fields": {
                "message": 5, "log": "caf\u{FFFD}", "7": "a number as a key", "when": "2023-11-14T22:13:20.125+00:00",
                "other": "<extension 5>", "deep": null, "tag": "t",
            },
        }]}),
        found
    );
    assert_eq!(format!("{}\"...\"{}", "[".repeat(32), "]".repeat(32)), shown);
    // Text in place of a map.
    assert_eq!("text", read(b"\x93\xA1t\x05\xA4text").unwrap()["records"][0]["message"]);
}

#[test]
fn the_tag_of_our_own_client_is_not_a_field() {
    let record = map(&[("logger", text("shop")), ("message", text("m"))]);
    let entries = bin(&list(&[b"\x05", &record]));
    let frame = |id: &str| list(&[&text("logspool"), &entries, &map(&[("chunk", text(id))])]);

    assert_eq!(json!(null), read(&frame("web/1/1-1")).unwrap()["records"][0]["fields"]);
    assert_eq!(json!({"tag": "logspool"}), read(&frame("p8n9gmxTQVC8/nh2wlKKeQ==")).unwrap()["records"][0]["fields"]);
}

#[test]
fn errors_have_the_reason_and_the_position() {
    assert!(matches!(problem(b"\x92\xA1t\xA1\xC1"), ForwardProblem::Malformed));
    assert!(matches!(problem(b"\x92\xA1t\xA2\x92\x05"), ForwardProblem::Truncated));
    assert!(matches!(problem(b"\x96\xA4PING"), ForwardProblem::Unexpected(_)));
    assert!(matches!(problem(b"\x92\x05\x90"), ForwardProblem::Unexpected("a tag")));
    assert!(matches!(problem(b"\x92\xA1t\x90\x90"), ForwardProblem::Unexpected("the end of the message")));
    assert!(matches!(problem(b"\xC0\xC0"), ForwardProblem::Unexpected(_)));
    // The list announces four values and has three.
    assert!(matches!(problem(b"\x94\xA1t\x90\x80"), ForwardProblem::Unexpected("the end of the message")));
    assert_eq!(
        "the Forward message is compressed with \"lz4\": send gzip or zstd",
        read(b"\x93\xA1t\xA0\x81\xAAcompressed\xA3lz4").unwrap_err().to_string()
    );
    assert_eq!(
        "the Forward message has another value instead of an entry: a list of a time and a map before byte 1",
        read(b"\x92\xA1t\xA1\x05").unwrap_err().to_string()
    );
}

#[test]
fn memory_is_bounded_whatever_is_sent() {
    let limits = ForwardLimits { frame: 100_000, expanded_entry: 10_000, items: 100 };
    let problem = |frame: &[u8]| read_within(frame, &limits).unwrap_err().problem;
    let gzipped = map(&[("compressed", text("gzip"))]);

    let bomb = list(&[b"\xA1t", &bin(&gzip(&entry(&"x".repeat(13_000)))), &gzipped]);
    assert!(matches!(problem(&bomb), ForwardProblem::LongEntry(10_000)));
    // A map of more pairs than there are bytes, and a list in it.
    assert!(matches!(
        problem(b"\x93\xA1t\x05\xDF\x7F\xFF\xFF\xFF"),
        ForwardProblem::Truncated | ForwardProblem::TooMany
    ));
    assert!(matches!(
        problem(&[b"\x92\xA1t\xC4\xFA\x92\x05\xDF\0\0\0\x33".to_vec(), vec![0xA0; 243]].concat()),
        ForwardProblem::TooMany
    ));
    let nested = [b"\x92\xA1t\xC4\x6C\x92\x05\x81\xA0\xDC\0\x65".to_vec(), vec![0xC0; 0x65]].concat();
    assert!(matches!(problem(&nested), ForwardProblem::TooMany));
}

#[test]
fn a_message_that_declares_more_entries_than_its_bytes_can_hold_is_refused_at_its_first_entries() {
    let gzipped = map(&[("compressed", text("gzip"))]);
    let entries = b"\x92\xC0\x80".repeat(340_000);
    for frame in [
        list(&[b"\xA1t", &bin(&gzip(&entries)), &gzipped]),
        list(&[b"\xA1t", &bin(&entries)]),
        list(&[b"\xA1t", &[&b"\xDD\0\x05\x30\x20"[..], &entries].concat()]),
    ] {
        let limits = ForwardLimits::default();
        let message = forward::read(&frame, &limits).unwrap();
        let (mut buffer, mut given) = (Vec::new(), 0);
        let read = message.records(&mut buffer, limits.expanded_entry, 0).read(|_| {
            given += 1;
            RecordFlow::Continue
        });

        assert!(matches!(read.unwrap_err().problem, ForwardProblem::TooDense(1601, 4803)));
        assert_eq!(1600, given);
        assert!(buffer.capacity() <= 128 * 1024, "{}", buffer.capacity());
    }
}

#[test]
fn records_are_read_in_parts_and_with_a_small_buffer_as_at_once() {
    let entries: Vec<u8> = (0..5_000).flat_map(|place| entry(&format!("{place} {}", "x".repeat(place % 97)))).collect();
    let gzipped = map(&[("compressed", text("gzip"))]);
    let whole = read(&list(&[b"\xA1t", &bin(&entries)])).unwrap();
    for frame in [list(&[b"\xA1t", &bin(&gzip(&entries)), &gzipped]), list(&[b"\xA1t", &bin(&entries)])] {
        let message = forward::read(&frame, &ForwardLimits::default()).unwrap();
        let mut buffer = Vec::new();
        let mut records = message.records(&mut buffer, 70_000, 10);
        let mut found = Vec::new();
        let part = |found: &mut Vec<_>, records: &mut forward::Records<'_>| {
            records.read(|record| {
                found.push(json!(record));
                if found.len() % 700 == 0 { RecordFlow::Pause } else { RecordFlow::Continue }
            })
        };
        while part(&mut found, &mut records).unwrap() == ReadProgress::Paused {}

        assert_eq!(whole["records"].as_array().unwrap()[10..], found);
        assert!(matches!(part(&mut found, &mut records), Ok(ReadProgress::Done)));
    }
}

#[test]
fn a_damaged_entry_loses_only_itself() {
    let entries: Vec<_> = (0..2_000).map(|number| entry(&format!("number {number}"))).collect();
    let timed = |entry: &[u8]| [b"\x92\xCE\x69\x21\0\0".as_slice(), &entry[2..]].concat();
    let entries: Vec<_> = entries.iter().map(|entry| timed(entry)).collect();
    let gzipped = map(&[("compressed", text("gzip"))]);
    type Change = fn(&mut Vec<u8>);
    let wrong: &[(&str, Change)] = &[
        ("no MessagePack", |entry| entry[0] = 0xC1),
        ("no list", |entry| entry[0] = 0x05),
        ("no time", |entry| entry[1] = 0xC1),
        ("a length that is too large", |entry| entry[7] = 0xBF),
    ];
    for (kind, change) in wrong {
        let mut changed = entries.clone();
        change(&mut changed[1_500]);
        let packed = changed.concat();
        for frame in [list(&[b"\xA1t", &bin(&packed)]), list(&[b"\xA1t", &bin(&gzip(&packed)), &gzipped])] {
            let message = forward::read(&frame, &ForwardLimits::default()).unwrap();
            let (mut buffer, mut found, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
            let mut records = message.records(&mut buffer, 1 << 20, 0);
            let each = |found: &mut Vec<String>, record: &Record<'_>| {
                found.push(record.message.clone().into_owned());
                RecordFlow::Continue
            };
            while records.read(|record| each(&mut found, record)).unwrap() == ReadProgress::Damaged {
                damaged.push(records.damaged().unwrap().bytes);
            }

            // A changed length may take the entry behind with it.
            assert!((1_997..=1_999).contains(&found.len()), "{kind}: {}", found.len());
            assert_eq!("number 1999", found.last().unwrap(), "{kind}");
            let bytes: usize = damaged.iter().map(Vec::len).sum();
            assert_eq!(1, damaged.len(), "{kind}");
            assert!(bytes < 60, "{kind}: {bytes}");
        }
    }
}

#[test]
fn the_entries_after_a_damaged_one_are_searched_in_bounded_time() {
    let starts = b"\x92\xCE\0\0\0\x05\xDD\0\0\x20\0".repeat(100_000);
    let frame = list(&[b"\xA1t", &bin(&[b"\xC1".as_slice(), &starts].concat())]);
    let message = forward::read(&frame, &ForwardLimits::default()).unwrap();

    assert!(message.records(&mut Vec::new(), 1 << 20, 0).read(|_| RecordFlow::Continue).is_err());
}

#[test]
fn the_metadata_of_fluent_bit_is_understood() {
    let otlp = map(&[
        ("severity_number", b"\x11".to_vec()),
        ("severity_text", text("Error")),
        ("trace_id", bin(b"\xAB\x01")),
        ("attributes", map(&[("level", text("x"))])),
    ]);
    let time = [b"\x92\xCE\0\0\0\x05".as_slice(), &map(&[("otlp", otlp), ("other", b"\x07".to_vec())])].concat();
    let entry = [b"\x92".as_slice(), &time, &map(&[("log", text("m"))])].concat();

    assert_eq!(
        json!([{
            "time_ns": 5_000_000_000_i64, "level": 40, "logger": "t", "message": "m", "trace_id": "ab01",
            "fields": {"severity_text": "Error", "level": "x", "other": 7},
        }]),
        read(&list(&[b"\xA1t", &bin(&entry)])).unwrap()["records"]
    );
}

#[test]
fn a_compressed_entry_longer_than_the_buffer_is_an_error_that_names_it() {
    let gzipped = map(&[("compressed", text("gzip"))]);
    let entries = [entry("short"), entry(&"x".repeat(300_000)), entry("after")].concat();
    let frame = list(&[b"\xA1t", &bin(&gzip(&entries)), &gzipped]);
    let message = forward::read(&frame, &ForwardLimits::default()).unwrap();
    let lengths = |most_buffer: usize, skip: usize| {
        let (mut buffer, mut lengths) = (Vec::new(), Vec::new());
        let read = message.records(&mut buffer, most_buffer, skip).read(|record| {
            lengths.push(record.message.len());
            RecordFlow::Continue
        });
        (lengths, read.map_err(|error| error.to_string()))
    };

    let too_long = "an entry of the Forward message is longer than 262144 bytes, decompressed".to_owned();
    assert_eq!((vec![5], Err(too_long)), lengths(256 * 1024, 0));
    assert_eq!((vec![300_000, 5], Ok(ReadProgress::Done)), lengths(1 << 20, 1));
}

const KEY: &str = "shared";

fn server(users: &[(String, String)]) -> HandshakeServer<'_> {
    HandshakeServer { hostname: "service", shared_key: KEY, users }
}

fn welcome(answer: HandshakeAnswer) -> Vec<u8> {
    match answer {
        HandshakeAnswer::Welcome(pong) => pong,
        HandshakeAnswer::Refused(pong) => panic!("refused: {pong:?}"),
    }
}

#[test]
fn a_client_with_the_key_is_accepted_and_verifies_the_server() {
    for users in [vec![], vec![("other".to_owned(), "x".to_owned()), ("me".to_owned(), "secret".to_owned())]] {
        let server = server(&users);
        let client = HandshakeClient { hostname: "client", shared_key: KEY, user: ("me", "secret") };
        let challenge = Challenge::read(&server.challenge([7; 32]).helo()).unwrap();
        let ping = client.ping(&challenge, &[9; 16]);
        let pong = welcome(server.answer(&server.challenge([7; 32]), &ping).unwrap());

        client.check(&challenge, &[9; 16], &pong).unwrap();
        // The answer to another client, or from a server with another key.
        assert!(matches!(client.check(&challenge, &[8; 16], &pong), Err(PongError::UnknownKey)));
        let stranger = HandshakeClient { shared_key: "else", ..client };
        assert!(matches!(stranger.check(&challenge, &[9; 16], &pong), Err(PongError::UnknownKey)));
    }
}

#[test]
fn the_handshake_of_another_logger_is_understood_on_both_sides() {
    let words: Vec<_> = cases(HANDSHAKE).collect();
    let me = [("me".to_owned(), "secret".to_owned())];
    assert_eq!(6, words.len());
    for (words, users) in words.chunks(3).zip([&[][..], &me]) {
        let [(name, helo, _), (_, ping, _), (_, pong, _)] = words else { panic!("three words") };
        let challenge = Challenge::read(helo).unwrap();
        let server = server(users);

        assert_eq!(*helo, challenge.helo(), "{name}");
        assert_eq!(*pong, welcome(server.answer(&challenge, ping).unwrap()), "{name}");
        let client = HandshakeClient { hostname: "client", shared_key: KEY, user: ("me", "secret") };
        // The salt is after the name: 32 bytes of text, which begin with their length.
        let salt: [u8; 32] = ping[15..47].try_into().unwrap();
        client.check(&challenge, &salt, pong).unwrap();
        let (ours, theirs) = (client.ping(&challenge, &salt), &ping[47..]);
        assert!(ours.ends_with(theirs), "{name}");
    }
}

#[test]
fn a_client_without_the_key_is_refused_with_the_reason() {
    let users = [("me".to_owned(), "secret".to_owned())];
    let server = server(&users);
    let challenge = server.challenge([7; 32]);
    let good = HandshakeClient { hostname: "client", shared_key: KEY, user: ("me", "secret") };
    for (client, why) in [
        (HandshakeClient { shared_key: "else", ..good }, "the server refuses the connection: the shared key is wrong"),
        (
            HandshakeClient { user: ("me", "wrong"), ..good },
            "the server refuses the connection: user name or password is wrong",
        ),
        (
            HandshakeClient { user: ("you", "secret"), ..good },
            "the server refuses the connection: user name or password is wrong",
        ),
        (
            HandshakeClient { user: ("", ""), ..good },
            "the server refuses the connection: user name or password is wrong",
        ),
    ] {
        let answer = server.answer(&challenge, &client.ping(&challenge, &[9; 16])).unwrap();
        let HandshakeAnswer::Refused(pong) = answer else { panic!("welcome, though {why}") };

        assert_eq!(why, client.check(&challenge, &[9; 16], &pong).unwrap_err().to_string());
    }
    // A proof for another connection is invalid here.
    let ping = good.ping(&server.challenge([1; 32]), &[9; 16]);
    assert!(matches!(server.answer(&challenge, &ping), Ok(HandshakeAnswer::Refused(_))));
}

#[test]
fn a_handshake_that_is_cut_off_or_changed_is_an_error_or_refused() {
    let server = server(&[]);
    let challenge = server.challenge([7; 32]);
    let client = HandshakeClient { hostname: "client", shared_key: KEY, user: ("", "") };
    let ping = client.ping(&challenge, &[9; 16]);
    let pong = welcome(server.answer(&challenge, &ping).unwrap());
    for length in 0..ping.len() {
        assert!(server.answer(&challenge, &ping[..length]).is_err());
    }
    for length in 0..pong.len() {
        assert!(client.check(&challenge, &[9; 16], &pong[..length]).is_err());
    }
    let helo = challenge.helo();
    for length in 0..helo.len() {
        assert!(Challenge::read(&helo[..length]).is_err());
    }
}
