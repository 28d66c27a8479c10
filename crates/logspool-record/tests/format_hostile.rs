//! Formats never panic on the bytes of a dead process, and always end the line.

use logspool_record::definition::SiteDefinition;
use logspool_record::format::{
    CompiledSite, Extras, Format, FormatSpec, MessageTemplate, RecordView, RenderState, Style,
};
use logspool_record::{Encoder, Values, tag};

/// Limits the time of a run; each case takes a few microseconds.
const CASES: usize = if cfg!(miri) { 50 } else { 20_000 };

/// A small generator with a seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn record() -> Encoder {
    let mut encoder = Encoder::new();
    encoder.context_str(tag::THREAD_NAME, "MainThread").context_int(tag::THREAD, 7).field("user").str("é");
    encoder.field("pair").tuple(2).int(1).str("b").context_str(tag::EXCEPTION, "Traceback");
    encoder.bytes.push(tag::SITE);
    let site = SiteDefinition {
        file: "/x/a.py".to_owned(),
        line: 3,
        function: "run".to_owned(),
        template: Some("%s %5d %.2f %r".to_owned()),
        ..SiteDefinition::default()
    };
    site.encode(&mut encoder);
    encoder.str("text").int(5).float(0.5).raw_bytes(b"\xff").rendered("x").none().bool(true);
    encoder
}

fn formats() -> Vec<Format> {
    let text = |style, template: &str| FormatSpec::text(style, template);
    [
        text(Style::Percent, "%(asctime)s %(levelname)-8s %(name)s:%(lineno)d %(message).20s %(user)s %(pair)5s"),
        text(Style::Brace, "{asctime} {message:>30} {thread:x} {user!a:^9} {created:.3f} {pair}"),
        text(Style::Dollar, "$message ${threadName} $funcName $relativeCreated $user"),
        FormatSpec::json(&[("t", "time"), ("m", "message"), ("e", "exception"), ("user", "user")], Extras::Append),
    ]
    .iter()
    .map(|spec| Format::compile(spec).expect("supported"))
    .collect()
}

fn check(formats: &[Format], bytes: &[u8], time_ns: i64, level: u16) {
    let site = CompiledSite::new(SiteDefinition { template: Some("%d %s".to_owned()), ..SiteDefinition::default() });
    for format in formats {
        let record = RecordView { time_ns, level, logger: "app", site: Some(&site), values: Values::new(bytes) };
        let mut out = Vec::new();
        let _ = format.render(&record, &mut RenderState::default(), &mut out);

        assert_eq!(Some(&b'\n'), out.last());
        assert!(std::str::from_utf8(&out).is_ok());
    }
}

#[test]
fn cut_records_become_lines() {
    let (formats, encoder) = (formats(), record());
    for cut in 0..=encoder.bytes.len() {
        check(&formats, &encoder.bytes[..cut], 1_700_000_000_000_000_000, 20);
    }
}

#[test]
fn changed_records_become_lines() {
    let (formats, encoder) = (formats(), record());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..CASES {
        let mut bytes = encoder.bytes.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            bytes[at] = match random.below(3) {
                0 => random.next() as u8,
                1 => (1 + random.below(12)) as u8,
                _ => (0x40 + random.below(11)) as u8,
            };
        }
        let time_ns = if random.below(2) == 0 { random.next() as i64 } else { i64::MIN };
        check(&formats, &bytes, time_ns, random.next() as u16);
    }
}

#[test]
fn random_templates_and_values_end() {
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
fn a_record_that_lacks_a_field_says_so_and_leaves_a_marker() {
    let format = Format::compile(&FormatSpec::text(Style::Percent, "[%(user)s] %(message)s")).expect("supported");
    let mut encoder = Encoder::new();
    encoder.context_str(tag::MESSAGE, "ready");
    let values = Values::new(&encoder.bytes);
    let record = RecordView { time_ns: 0, level: 20, logger: "app", site: None, values };
    let mut out = Vec::new();
    let result = format.render(&record, &mut RenderState::default(), &mut out);

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
        let values = Values::new(&encoder.bytes);
        let mut out = b"line before\n".to_vec();
        let record = RecordView { time_ns: 0, level: 20, logger: "app", site: None, values };
        format.render(&record, &mut RenderState::default(), &mut out).expect("the record fits");

        assert_eq!(format!("line before\n{expected}"), String::from_utf8(out).expect("UTF-8"));
    }
}
