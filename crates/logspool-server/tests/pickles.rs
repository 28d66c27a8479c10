//! Pickled log records: valid ones made by CPython (`corpus/make_pickles.py`), and malicious ones.

use crate::corpus_lines;

use std::time::{Duration, Instant};

use corpus_lines::cases;
use logspool_server::decoders::log_record::{self, LogRecordError};
use logspool_server::decoders::pickle::{self, PickleLimits, PickleProblem};
use logspool_server::value::Value;

const FILES: [(&str, &str); 4] = [
    ("3.10", include_str!("corpus/pickles-3.10.txt")),
    ("3.11", include_str!("corpus/pickles-3.11.txt")),
    ("3.12", include_str!("corpus/pickles-3.12.txt")),
    ("3.13", include_str!("corpus/pickles-3.13.txt")),
];

#[test]
fn records_are_read_with_their_meaning_in_python() {
    for (version, text) in FILES {
        let mut count = 0;
        for (name, frame, expected) in cases(text) {
            let record =
                log_record::read(&frame, PickleLimits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let found = serde_json::to_value(&record).unwrap();
            assert_eq!(expected, found, "{version}, {name}");
            count += 1;
        }
        assert!(count > 80, "{version}: {count} cases");
    }
}

#[test]
fn a_frame_that_is_cut_off_anywhere_is_an_error() {
    let (_, frame, _) = cases(FILES[1].1).next().unwrap();
    for length in 0..frame.len() {
        assert!(log_record::read(&frame[..length], PickleLimits::default()).is_err(), "{length} bytes");
    }
}

#[test]
fn a_frame_with_any_byte_changed_is_a_record_or_an_error() {
    for (_, mut frame, _) in cases(FILES[1].1).filter(|(_, frame, _)| frame.len() < 2000) {
        for at in 0..frame.len() {
            let before = frame[at];
            for changed in [0, 0xFF, before ^ 1, before ^ 0x80, b'.', b'(', b't', b'h', b'R', b'b'] {
                frame[at] = changed;
                if let Ok(record) = log_record::read(&frame, PickleLimits::default()) {
                    serde_json::to_string(&record).unwrap();
                }
            }
            frame[at] = before;
        }
    }
}

fn problem(frame: &[u8]) -> PickleProblem {
    pickle::read(frame, PickleLimits::default()).unwrap_err().problem
}

#[test]
fn errors_have_the_reason_and_the_position() {
    assert_eq!(PickleProblem::Truncated, problem(b""));
    assert_eq!(PickleProblem::Unknown(0xFF), problem(b"\xFF"));
    assert_eq!(PickleProblem::Stack, problem(b"."));
    assert_eq!(PickleProblem::Stack, problem(b"NNs."));
    assert_eq!(PickleProblem::Malformed, problem(b"Ix\n."));
    assert_eq!(PickleProblem::Malformed, problem(b"h\x05."));
    assert_eq!(PickleProblem::Outside, problem(b"Psomewhere\n."));
    assert_eq!(
        "the instruction at byte 1 of the pickle needs other values than it finds",
        pickle::read(b"}s.", PickleLimits::default()).unwrap_err().to_string()
    );
    assert_eq!(Err(LogRecordError::NotARecord), log_record::read(b"].", PickleLimits::default()));
    assert_eq!(Err(LogRecordError::NotARecord), log_record::read(b"}.", PickleLimits::default()));
}

#[test]
fn a_length_beyond_the_frame_takes_no_memory() {
    assert_eq!(PickleProblem::Truncated, problem(b"X\xFF\xFF\xFF\xFFabc."));
    assert_eq!(PickleProblem::Truncated, problem(b"\x8d\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFabc."));
    assert_eq!(PickleProblem::Malformed, problem(b"Nr\xFF\xFF\xFF\xFF."));
}

/// Number of values in a value.
fn count(value: &Value<'_>) -> usize {
    1 + match value {
        Value::List(values) => values.iter().map(count).sum(),
        Value::Map(pairs) => pairs.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

#[test]
fn a_memo_that_doubles_repeatedly_is_shown_up_to_the_limit() {
    // [[..., ...], the same]: 2^1000 values.
    let mut frame = b"]q\x00".to_vec();
    for index in 0..1000_u32 {
        frame.extend(b"]");
        frame.extend(b"r");
        frame.extend((index + 1).to_le_bytes());
        for _ in 0..2 {
            frame.extend(b"j");
            frame.extend(index.to_le_bytes());
            frame.extend(b"a");
        }
    }
    frame.extend(b".");
    let pickle = pickle::read(&frame, PickleLimits::default()).unwrap();

    assert!(count(&pickle.value()) <= 3 * PickleLimits::default().items);
}

#[test]
fn repeatedly_shown_text_is_bounded() {
    let mut frame = b"]q\x00X\x00\x00\x01\x00".to_vec();
    frame.extend([b'x'; 65536]);
    frame.extend(b"q\x01a");
    for _ in 0..5000 {
        frame.extend(b"h\x01a");
    }
    frame.extend(b".");
    let pickle = pickle::read(&frame, PickleLimits::default()).unwrap();
    let shown = serde_json::to_string(&pickle.value()).unwrap();

    assert!(shown.len() < 5 * frame.len() + 6 * 5000, "{} bytes from {}", shown.len(), frame.len());
}

/// A text (`X`) or bytes (`B`) of `count` times `byte` and an `end`, as the first memo entry.
fn memo(code: u8, byte: u8, count: usize, end: &[u8]) -> Vec<u8> {
    let mut frame = vec![code];
    frame.extend(u32::try_from(count + end.len()).unwrap().to_le_bytes());
    frame.resize(frame.len() + count, byte);
    frame.extend(end);
    frame.extend(b"q\x00");
    frame
}

#[test]
fn text_shared_by_a_memo_is_copied_only_within_the_limits() {
    const LONG: usize = 700_000;
    /// Ten times the need of a busy machine. Without limits it would take minutes, or more memory than available.
    const IN_TIME: Duration = Duration::from_secs(20);
    let list = |before: &[&[u8]], shown: &[u8]| [&before.concat()[..], b"](", &shown.repeat(9_990), b"e."].concat();
    let (text, plain) = (memo(b'X', b'x', LONG, b"\xFF"), memo(b'X', b'x', LONG, b""));
    // Each byte is shown as four characters. Other bytes make the frame longer, so that the second copy seems to have
    // room.
    let escaped = [&memo(b'B', b'x', LONG / 2, b"")[..], b"0", &memo(b'B', 0xFF, LONG, b"")].concat();
    let wide = memo(b'X', b'x', LONG, "\u{20AC}".as_bytes());
    let pairs = b"h\x00h\x01".repeat(60_000);
    let state = [&b"}("[..], &pairs, b"u"].concat();
    let level = b"X\x07\x00\x00\x00levelnoK\x14";
    for (what, frame) in [
        ("text", list(&[&text], b"h\x00")),
        ("bytes", list(&[&memo(b'B', b'x', LONG, b"")], b"h\x00")),
        ("bytes that are escaped", list(&[&escaped], b"h\x00")),
        ("names of classes", [&text[..], &b"h\x00h\x00\x93".repeat(39_990), b"."].concat()),
        ("a name that is shown", list(&[&text, b"h\x00h\x00\x93q\x01"], b"h\x01")),
        ("text that is no bytes", list(&[&wide, b"c_codecs\nencode\nh\x00\x85Rq\x01"], b"h\x01")),
        ("a state", list(&[&memo(b'X', b'x', 3, b""), b"Nq\x01cuuid\nUUID\n)R", &state, b"bq\x02"], b"h\x02")),
        ("keys", [&text[..], b"Nq\x01}(", level, &pairs, b"u."].concat()),
        ("keys of plain text", [&b"}("[..], level, &plain, b"N", &b"h\x00N".repeat(250), b"u."].concat()),
    ] {
        let began = Instant::now();
        let shown = match log_record::read(&frame, PickleLimits::default()) {
            Ok(record) => serde_json::to_string(&record).unwrap(),
            Err(_) => serde_json::to_string(&pickle::read(&frame, PickleLimits::default()).unwrap().value()).unwrap(),
        };

        assert!(began.elapsed() < IN_TIME, "{what}: {:?}", began.elapsed());
        // The shown text, `"...",` for each of the rest, and four characters for one that JSON escapes.
        assert!(shown.len() < 9 * frame.len() + 60_000, "{what}: {} bytes from {}", shown.len(), frame.len());
    }
}

#[test]
fn decoding_a_recursive_or_deep_list_ends() {
    let pickle = pickle::read(b"]q\x00h\x00a.", PickleLimits::default()).unwrap();
    assert_eq!(32, count(&pickle.value()) - 1);

    let mut frame = vec![b']'; 5000];
    frame.extend(vec![b'a'; 4999]);
    frame.push(b'.');
    assert!(pickle::read(&frame, PickleLimits::default()).is_ok());
}

#[test]
fn decoding_a_dict_that_is_its_own_key_ends() {
    let pickle = pickle::read(b"(dp0\ng0\nI2\ns.", PickleLimits::default()).unwrap();
    let Value::Map(pairs) = pickle.value() else { panic!("{:?}", pickle.value()) };
    assert_eq!(vec![("...".into(), Value::Int(2))], pairs);

    // The same for an object of a class. Its key is a list that contains the object.
    let frame = b"ccollections\nOrderedDict\n(tRp0\n((lp1\ng0\natI3\nsg0\nI4\ns.";
    let pickle = pickle::read(frame, PickleLimits::default()).unwrap();
    assert!(count(&pickle.value()) < 100, "{:?}", pickle.value());
}

#[test]
fn values_nested_too_deeply_are_counted() {
    // A list of many values, and a list at the maximum depth that refers to it as many times.
    let mut frame = b"](".to_vec();
    frame.extend(vec![b'N'; 4000]);
    frame.extend(b"eq\x000");
    frame.extend(vec![b']'; 31]);
    frame.push(b'(');
    frame.extend(b"h\x00".repeat(4000));
    frame.push(b'e');
    frame.extend(vec![b'a'; 30]);
    frame.push(b'.');
    let pickle = pickle::read(&frame, PickleLimits::default()).unwrap();

    assert!(count(&pickle.value()) <= PickleLimits::default().items + 32, "{}", count(&pickle.value()));
}

#[test]
fn decoding_nested_calls_ends() {
    // f()()()...: the result of each call is the function of the next.
    let mut frame = b"cm\nf\n".to_vec();
    for _ in 0..5000 {
        frame.extend(b")R");
    }
    frame.extend(b".");
    let pickle = pickle::read(&frame, PickleLimits::default()).unwrap();

    assert_eq!(Value::text("<object>"), pickle.value());
}

#[test]
fn more_values_than_allowed_are_an_error() {
    let mut frame = b"](".to_vec();
    frame.extend(vec![b'N'; 100_000]);
    frame.extend(b"e.");

    assert_eq!(PickleProblem::TooMany, problem(&frame));
}

#[test]
fn nothing_is_executed() {
    let frame = b"cos\nsystem\n(S'touch /tmp/executed'\ntR.";

    assert_eq!(
        Value::text("<os.system('touch /tmp/executed')>"),
        pickle::read(frame, PickleLimits::default()).unwrap().value()
    );
}
