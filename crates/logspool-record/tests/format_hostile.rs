//! Formats never panic on the bytes of a dead process, and always end the line.

use crate::support;

use logspool_record::definition::{Grammar, SiteDefinition};
use logspool_record::format::{
    AssignedValue, Extras, Format, FormatSpec, MessageTemplate, ObjectSpec, RecordView, RenderState, Style,
};
use logspool_record::{Encoder, Values, tag};

use support::Random;

/// Limits the time of a run; each case takes a few microseconds.
const CASES: usize = if cfg!(miri) { 50 } else { 20_000 };

fn record() -> Encoder {
    let mut encoder = Encoder::new();
    encoder.context_str(tag::THREAD_NAME, "MainThread").context_int(tag::THREAD, 7).field("user").str("é");
    encoder.field("pair").tuple(2).int(1).str("b").context_str(tag::EXCEPTION, "Traceback");
    encoder.item("user").str("ann").item("x").tuple(1).none().field("user.name").int(3);
    let site = SiteDefinition {
        file: "/x/a.py".to_owned(),
        line: 3,
        function: "run".to_owned(),
        template: Some("%s %5d %.2f %r".to_owned()),
        ..SiteDefinition::default()
    };
    site.encode_inline(&mut encoder);
    encoder.str("text").int(5).float(0.5).raw_bytes(b"\xff").rendered("x").none().bool(true);
    encoder
}

/// An object whose extra fields and items of the message are its members, or whose extra fields are nested.
fn object(assigned: &[(&str, AssignedValue)]) -> FormatSpec {
    let assignments = assigned.iter().map(|(key, assigned)| ((*key).to_owned(), assigned.clone())).collect();
    FormatSpec::object(ObjectSpec { ascii: true, assignments, ..ObjectSpec::default() })
}

fn formats() -> Vec<Format> {
    let attribute = |name: &str| AssignedValue::Attribute(name.to_owned());
    let text = |style, template: &str| FormatSpec::text(style, template);
    [
        text(Style::Percent, "%(asctime)s %(levelname)-8s %(name)s:%(lineno)d %(message).20s %(user)s %(pair)5s"),
        text(Style::Brace, "{asctime} {message:>30} {thread:x} {user!a:^9} {created:.3f} {pair}"),
        text(Style::Dollar, "$message ${threadName} $funcName $relativeCreated $user"),
        FormatSpec::json(&[("t", "time"), ("m", "message"), ("e", "exception"), ("user", "user")], Extras::Append),
        object(&[
            ("message", attribute("message")),
            ("user", attribute("user")),
            ("", AssignedValue::MessageItems),
            ("", AssignedValue::Extras),
        ]),
        object(&[
            ("message", attribute("message")),
            ("", AssignedValue::NestedExtras),
            ("user", AssignedValue::Open),
            ("x", attribute("name")),
            ("", AssignedValue::Close),
        ]),
    ]
    .iter()
    .map(|spec| Format::compile(spec).expect("supported"))
    .collect()
}

fn check(formats: &[Format], bytes: &[u8], time_ns: i64, level: u16) {
    let site = support::site(Grammar::Percent, "%d %s");
    for format in formats {
        let record = RecordView { time_ns, level, logger: "app", site: Some(&site), values: Values::new(bytes) };
        let mut out = Vec::new();
        let _ = format.render(&record, &mut RenderState::default(), &mut out);

        assert_eq!(Some(&b'\n'), out.last());
        assert!(std::str::from_utf8(&out).is_ok());
    }
}

#[test]
fn truncated_records_are_still_shown_as_lines() {
    let (formats, encoder) = (formats(), record());
    for cut in 0..=encoder.bytes.len() {
        check(&formats, &encoder.bytes[..cut], 1_700_000_000_000_000_000, 20);
    }
}

#[test]
fn damaged_records_are_still_shown_as_lines() {
    let (formats, encoder) = (formats(), record());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..CASES {
        let mut bytes = encoder.bytes.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => random.next() as u8,
                1 => (1 + random.below(12)) as u8,
                _ => tag::CONTEXT + random.below(usize::from(tag::ITEM - tag::CONTEXT) + 1) as u8,
            };
        }
        let time_ns = if random.below(2) == 0 { random.next() as i64 } else { i64::MIN };
        check(&formats, &bytes, time_ns, random.next() as u16);
    }
}

#[test]
fn rendering_random_templates_and_values_always_ends() {
    const LETTERS: &[u8] = b"%%%%%%()sdrfgexXcai*.0123 -+#lh\xc3\xa9{}$:!<>^=_,";
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let encoder = record();
    for _ in 0..CASES {
        let source: Vec<u8> = (0..random.below(24)).map(|_| LETTERS[random.below(LETTERS.len())]).collect();
        let source = String::from_utf8_lossy(&source);
        let template = MessageTemplate::parse(&source);
        let at = random.below(encoder.bytes.len());
        let mut out = Vec::new();
        let _ = template.render(&mut Values::new(&encoder.bytes[at..]), &mut out);

        assert!(std::str::from_utf8(&out).is_ok());
        for style in [Style::Percent, Style::Brace, Style::Dollar] {
            if let Ok(format) = Format::compile(&FormatSpec::text(style, &source)) {
                check(&[format], &encoder.bytes[at..], 0, 0);
            }
        }
    }
}

#[test]
fn a_missing_field_is_reported_and_leaves_a_marker() {
    let format = Format::compile(&FormatSpec::text(Style::Percent, "[%(user)s] %(message)s")).expect("supported");
    let mut encoder = Encoder::new();
    encoder.context_str(tag::MESSAGE, "ready");
    let mut out = Vec::new();
    let result = format.render(&support::record(None, &encoder.bytes), &mut RenderState::default(), &mut out);

    assert_eq!(Err(logspool_record::format::RenderError::MissingField), result);
    assert_eq!("[<?>] ready\n", String::from_utf8(out).expect("UTF-8"));
}

#[test]
fn exception_and_stack_follow_as_stock_logging_appends_them() {
    for (message, exception, stack, expected) in
        [("m", "e", "s", "m\ne\ns\n"), ("m\n", "e\n", "s", "m\ne\ns\n"), ("", "e", "", "\ne\n"), ("m", "", "", "m\n")]
    {
        let format = Format::compile(&FormatSpec::text(Style::Percent, "%(message)s")).expect("supported");
        let mut encoder = Encoder::new();
        encoder.context_str(tag::MESSAGE, message);
        encoder.context_str(tag::EXCEPTION, exception).context_str(tag::STACK, stack);
        let mut out = b"line before\n".to_vec();
        let record = support::record(None, &encoder.bytes);
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");

        assert_eq!(format!("line before\n{expected}"), String::from_utf8(out).expect("UTF-8"));
    }
}

#[test]
fn rendering_random_brace_templates_and_values_always_ends() {
    const PARTS: &[&str] = &[
        "{",
        "}",
        "{{",
        "{}",
        "{:",
        "{0",
        "{1:",
        "{9999}",
        "$",
        ".*",
        "1000000000",
        "1024",
        ".",
        "#0",
        "<",
        "é",
        "x?",
    ];
    let mut random = Random(0x6a09_e667_f3bc_c909);
    let mut encoder = record();
    encoder.float32(0.1).pointer(7).char('é').int128(i128::MIN).uint(u64::MAX).tuple(2).int(-1).char('\n');
    for _ in 0..CASES {
        let source: String = (0..random.below(12)).map(|_| PARTS[random.below(PARTS.len())]).collect();
        for grammar in [Grammar::Fmt, Grammar::Rust, Grammar::Plain, Grammar::Percent] {
            let _ = logspool_record::format::check(grammar, &source, &[]);
            let at = random.below(encoder.bytes.len());
            let (text, _) = support::message(grammar, &source, &encoder.bytes[at..]);

            assert!(text.len() < 20_000, "{source}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri takes minutes for a text of 64 MiB")]
fn a_repeated_argument_makes_a_bounded_message() {
    let mut encoder = Encoder::new();
    encoder.str(&"x".repeat(1 << 20));
    for grammar in [Grammar::Fmt, Grammar::Rust] {
        let (text, complete) = support::message(grammar, &"{0}".repeat(10_000), &encoder.bytes);

        assert!(!complete && text.len() < 70 << 20 && text.ends_with("<?>"));
    }
}

#[test]
fn widths_beyond_the_limit_are_refused_and_marked() {
    let mut encoder = Encoder::new();
    encoder.int(1).int(1_000_000_000);
    for (grammar, template) in [
        (Grammar::Fmt, "{:1000000000}"),
        (Grammar::Fmt, "{:{}}"),
        (Grammar::Fmt, "{:.99999999999999999999f}"),
        (Grammar::Rust, "{0:1$}"),
        (Grammar::Rust, "{:1000000000}"),
    ] {
        let (text, complete) = support::message(grammar, template, &encoder.bytes);

        assert!(!complete && text.len() < 100 && text.contains("<?>"), "{template}: {text}");
    }
}
