//! Lines rendered by programs are compared with the same lines rendered piece by piece.

use crate::support;

use logspool_record::cpython::{CpythonRules, TimeArithmetic};
use logspool_record::definition::{Grammar, SiteDefinition, Zone};
use logspool_record::format::{
    AssignedValue, CompiledSite, Extras, Format, FormatSpec, ObjectSpec, ParsedRecord, RecordView, RenderState, Style,
    TextShape,
};
use logspool_record::{Encoder, Values, tag};

use support::Random;

/// Rounds of each test. Miri takes minutes for a thousand.
const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };

/// Values of each type.
trait RandomValues {
    fn double(&mut self) -> f64;
    fn value(&mut self, values: &mut Encoder);
}

impl RandomValues for Random {
    /// A double: a tie of few binary digits, a decimal, or any bits.
    fn double(&mut self) -> f64 {
        match self.below(5) {
            0 => (self.below(1 << 20) as f64 - 500_000.0) / f64::from(1 << self.below(16)),
            1 => (self.below(2_000_000) as f64 - 1e6) / 1000.0,
            2 => self.below(1 << 53) as f64 / 2f64.powi(self.below(80) as i32),
            3 => self.pick(&[
                0.0,
                -0.0,
                f64::NAN,
                f64::INFINITY,
                1e300,
                5e-324,
                0.0005,
                2.5,
                1e19,
                1.8446744073709552e19,
            ]),
            _ => f64::from_bits(self.next()),
        }
    }

    fn value(&mut self, values: &mut Encoder) {
        match self.below(12) {
            0..3 => values.str(self.pick(&[
                "ann",
                "",
                "é",
                "a \"b\"\\\n",
                "sixteen bytes...",
                "seventeen bytes..",
                "fifteen bytes é",
            ])),
            3 => values.str(&"long ".repeat(self.below(30))),
            4..6 => values.int(self.next() as i64 >> self.below(64)),
            6..10 => values.float(self.double()),
            10 => values.bool(true),
            _ => values.none(),
        };
    }
}

const TEMPLATES: &[(Grammar, &str)] = &[
    (Grammar::Percent, "user %s did %d in %.3f ms"),
    (Grammar::Percent, "%s"),
    (Grammar::Percent, "%f%%%.0f%.1f%.2f"),
    (Grammar::Percent, "%.17f %.18f"),
    (Grammar::Percent, "%5d %s"),
    (Grammar::Percent, "100%% of it"),
    (Grammar::Percent, "%.17f"),
    (Grammar::Percent, "%d %d"),
    (Grammar::Percent, "%"),
    (Grammar::Fmt, "user {} did {} in {:.3f} ms"),
    (Grammar::Fmt, "{{{}}}"),
    (Grammar::Fmt, "{1} {0}"),
    (Grammar::Fmt, "{:.6f} {:>8}"),
    (Grammar::Rust, "user {} did {} in {:.3} ms"),
    (Grammar::Plain, "{} %s"),
    (Grammar::Percent, "a \"quoted\\\" \n%s\u{1}"),
    (Grammar::Plain, "\"\t"),
];

fn sites() -> Vec<CompiledSite> {
    let site = |grammar, template: Option<&str>| {
        CompiledSite::new(SiteDefinition {
            file: "/srv/app/main.py".to_owned(),
            line: 7,
            function: "run".to_owned(),
            template: template.map(str::to_owned),
            grammar,
        })
    };
    let templates = TEMPLATES.iter().map(|(grammar, template)| site(*grammar, Some(template)));
    templates.chain([site(Grammar::Percent, None)]).collect()
}

fn formats() -> Vec<Format> {
    let mut formats = Vec::new();
    for layout in [
        "[%(asctime)s] [%(levelname)s] [%(name)s] %(message)s",
        "%(levelname)-8s|%(name)s:%(lineno)04d|%(message)s|%(funcName)s",
        "%(message)s %(asctime)s %(asctime)s %(pathname)s %(module)s %(process)d",
        "%(message)s %(message)s",
        "%(message)s %(msecs)d",
        "%(asctime)30s %(message)s",
        "%(thread)d|%(threadName)s|%(thread)s %(message)s",
        "%(thread)5d %(message)s %(processName)s",
        "%(threadName)s %(threadName)s %(message)s",
    ] {
        for arithmetic in [TimeArithmetic::FloatFraction, TimeArithmetic::FloatWhole, TimeArithmetic::Nanoseconds] {
            for (date_format, msec_format) in [(None, "%s,%03d"), (None, "%s.%s"), (Some("%H:%M:%S"), "")] {
                let mut spec = FormatSpec::text(Style::Percent, layout);
                spec.zone = Zone::Utc;
                spec.cpython = CpythonRules::of_records(12, arithmetic);
                spec.date_format = date_format.map(str::to_owned);
                spec.default_msec_format = Some(msec_format.to_owned());
                formats.push(Format::compile(&spec).unwrap());
            }
        }
    }
    let members =
        [("t", "time"), ("l\"", "levelname"), ("m", "message"), ("n", "name"), ("x", "exception"), ("u", "user")];
    for (members, extras) in [
        (&members[..], Extras::Append),
        (&members[2..], Extras::Omit),
        (&members[..2], Extras::Append),
        (&[("m", "message"), ("again", "message")], Extras::Omit),
        (&[("m", "message"), ("ms", "msecs")], Extras::Omit),
        (&[("at", "asctime"), ("m", "message")], Extras::Omit),
        (&[("m", "message"), ("t", "time"), ("again", "time"), ("line", "lineno")], Extras::Omit),
        (&[("u", "user")], Extras::Append),
        (&[("id", "thread"), ("name", "threadName"), ("m", "message")], Extras::Append),
        (&[("m", "message"), ("p", "processName")], Extras::Append),
    ] {
        formats.push(Format::compile(&FormatSpec::json(members, extras)).unwrap());
    }
    for pattern in [
        "[{time:%Y-%m-%d %H:%M:%S.%3f}] [{logger}] [{level:<8}] {message}",
        "{time} {file}:{line:>4} {function} {path} {process} {thread}|{message}",
        "{time:%H.%6f%z %M} {message} {fields}{fields.user:>3}",
        "{message}|{time:%9f}",
        "{message} {message}",
        "{message:>40} {time:%S}",
        "{time:%H:%M:%S}",
        "{thread_name:^5}",
        "[{thread}] {thread_name}|{message} {fields}",
        "{thread:>20} {message}",
    ] {
        let mut spec = FormatSpec::pattern(pattern);
        spec.zone = Zone::Utc;
        spec.process_id = 77;
        formats.push(Format::compile(&spec).unwrap());
    }
    formats.push(Format::compile(&FormatSpec::entry(77)).unwrap());
    for (ascii, compact) in [(true, false), (false, true)] {
        formats.extend(objects(ascii, compact));
    }
    formats
}

/// Objects with members of every kind.
fn objects(ascii: bool, compact: bool) -> Vec<Format> {
    let attribute = |name: &str| AssignedValue::Attribute(name.to_owned());
    let nested = vec![
        ("message", attribute("message")),
        ("", AssignedValue::NestedExtras),
        ("log", AssignedValue::Open),
        ("line", attribute("lineno")),
        ("thread", AssignedValue::Open),
        ("id", attribute("thread")),
        ("name", attribute("threadName")),
        ("", AssignedValue::Close),
        ("", AssignedValue::Close),
        ("after", AssignedValue::Constant("1".to_owned())),
    ];
    let flat = vec![
        ("at", attribute("asctime")),
        ("l\"\u{e9}", attribute("levelname")),
        ("m", attribute("message")),
        ("user", attribute("user")),
        ("e", AssignedValue::Exception(TextShape::Lines)),
        ("s", AssignedValue::Stack(TextShape::Whole)),
        ("", AssignedValue::MessageItems),
        ("", AssignedValue::Extras),
        ("none", AssignedValue::NullIfAbsent),
    ];
    let timed = vec![("m", attribute("message")), ("t", AssignedValue::Timestamp)];
    let other = vec![("c", attribute("created")), ("m", attribute("message"))];
    let again = vec![("m", attribute("message")), ("n", attribute("name")), ("m", attribute("levelno"))];
    let formats = [nested, flat, timed, other, again].map(|assignments| {
        let assignments = assignments.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut spec = ObjectSpec { ascii, assignments, compact, ..ObjectSpec::default() };
        spec.prefix = "@cee: ".to_owned();
        let mut spec = FormatSpec::object(spec);
        spec.zone = Zone::Utc;
        spec.date_format = ascii.then(|| "%d \u{e9} %H:%M:%S".to_owned());
        Format::compile(&spec).unwrap()
    });
    formats.into()
}

/// Renders a record in both ways, and compares bytes and result.
fn compare(format: &Format, record: &RecordView<'_>, state: &mut RenderState) {
    let (mut by_program, mut by_piece) = (b"before ".to_vec(), b"before ".to_vec());
    let shown = format.render(record, state, &mut by_program);
    let expected = format.render_parsed(&ParsedRecord::new(record), &mut RenderState::default(), &mut by_piece);

    assert_eq!(
        (by_piece.escape_ascii().to_string(), expected),
        (by_program.escape_ascii().to_string(), shown),
        "{record:?}"
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no wcsftime")]
fn programs_write_the_bytes_of_the_pieces() {
    let (sites, mut random) = (sites(), Random(0x9e37_79b9_7f4a_7c15));
    for format in formats() {
        let mut state = RenderState::default();
        let mut time_ns = 1_784_982_896_000_000_000;
        for _ in 0..ROUNDS / 20 {
            let site = random.choose(&sites);
            let mut values = Encoder::new();
            if random.below(3) > 0 {
                values.context_int(tag::THREAD, random.next() as i64 >> random.below(64));
                values.context_str(
                    tag::THREAD_NAME,
                    random.pick(&["io", "", "\u{e9}\u{7f}", "a \"long\" name of a thread"]),
                );
                if random.below(2) == 0 {
                    values.context_str(tag::PROCESS_NAME, "MainProcess");
                }
            }
            match random.below(12) {
                0 => {
                    values.context_str(tag::MESSAGE, "the whole message");
                }
                10 => {
                    values.field("user").str("eve").str("ann").int(3).float(0.5);
                }
                11 => {
                    values.context_str(tag::MESSAGE, "a \"message\"\\\n");
                }
                1 => {
                    values.context_str(tag::EXCEPTION, "Traceback").str("ann").int(3).float(0.5);
                }
                2 => {
                    values.context_int(tag::TIME, 5).str("ann").int(3).float(0.5);
                }
                3..7 => (0..random.below(5)).for_each(|_| random.value(&mut values)),
                _ => {
                    values.str("ann").int(random.next() as i64).float(random.double());
                }
            }
            if random.below(20) == 0 && !values.bytes.is_empty() {
                let at = random.below(values.bytes.len());
                match random.below(2) {
                    0 => values.bytes.truncate(at),
                    _ => values.bytes[at] = random.next() as u8,
                }
            }
            time_ns += random.pick(&[0, 1, 239, 999, 300_000, 999_999, 1_000_000, 999_999_000, -400_000]);
            let record = RecordView {
                time_ns,
                level: random.pick(&[20, 30, 35]),
                logger: random.pick(&["app", "app.db", ""]),
                site: Some(site).filter(|_| random.below(50) > 0),
                values: Values::new(&values.bytes),
            };
            compare(&format, &record, &mut state);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no wcsftime")]
fn usual_formats_have_programs_also_for_records_with_a_thread() {
    let object = ["asctime", "levelname", "message", "thread"]
        .map(|name| (name.to_owned(), AssignedValue::Attribute(name.to_owned())));
    let object = ObjectSpec { assignments: object.to_vec(), ascii: true, ..ObjectSpec::default() };
    let site = support::site(Grammar::Fmt, "user {} did {}");
    let mut values = Encoder::new();
    values.context_int(tag::THREAD, 7).context_str(tag::THREAD_NAME, "io").str("ann").int(3);
    for spec in [
        FormatSpec::text(Style::Percent, "%(asctime)s %(threadName)s %(thread)d %(message)s"),
        FormatSpec::pattern("{time} {thread} {thread_name} {level:<8} {message}"),
        FormatSpec::json(&[("t", "time"), ("m", "message"), ("n", "threadName")], Extras::Append),
        FormatSpec::object(object),
        FormatSpec::entry(77),
    ] {
        let format = Format::compile(&spec).unwrap();
        let (mut state, mut out) = (RenderState::default(), Vec::new());
        let record = support::record(Some(&site), &values.bytes);
        format.render(&record, &mut state, &mut out).unwrap();
        let by_render = std::mem::take(&mut out);
        let program = state.program_of(&record).expect("a program");

        assert!(format.render_again(program, record.time_ns, &values.bytes, &mut state, &mut out), "{spec:?}");
        assert_eq!(by_render.escape_ascii().to_string(), out.escape_ascii().to_string());
    }
}

/// Renders a record of each kind as an entry in both ways. The lengths and numbers are around those at which
/// MessagePack changes its form.
#[test]
fn every_kind_of_entry_has_the_same_bytes_both_ways() {
    let placed = CompiledSite::new(SiteDefinition {
        file: "/srv/app/main.py".to_owned(),
        line: 70_000,
        function: "run".to_owned(),
        template: Some("user %s did %d".to_owned()),
        ..SiteDefinition::default()
    });
    let untold = CompiledSite::new(SiteDefinition { template: None, ..placed.definition().clone() });
    let text = |len: usize| "\u{e9}x".repeat(len / 3 + 1).chars().take(len - len / 3).collect::<String>();
    let lengths = [0, 1, 15, 16, 30, 31, 32, 33, 254, 255, 256, 65_535, 65_536, 70_000];
    let threads = [0, 127, 128, 255, 256, 65_536, 1 << 32, i64::MAX, -1, -32, -33, -129, -32_769, i64::MIN];
    let times = [0, -1, 999_999_999, 1_000_000_000, 4_294_967_295_999_999_999, 5_000_000_000_000_000_000, i64::MIN];
    let mut records = Vec::new();
    let with = |make: &dyn Fn(&mut Encoder)| {
        let mut values = Encoder::new();
        make(&mut values);
        values.bytes
    };
    // Miri takes minutes for the long texts.
    let few = if cfg!(miri) { 10 } else { lengths.len() };
    for (index, len) in lengths.into_iter().enumerate().take(few) {
        let (own, thread) = (text(len), threads[index]);
        records.push((Some(&placed), with(&|values| _ = values.str(&own).int(thread))));
        records.push((Some(&untold), with(&|values| _ = values.context_str(tag::MESSAGE, &own))));
        records.push((None, with(&|values| _ = values.context_str(tag::MESSAGE, &own))));
        for (names, has_thread) in [(0, true), (1, false), (2, true), (3, true), (3, false)] {
            records.push((
                Some(&placed),
                with(&|values| {
                    if names & 1 != 0 {
                        values.context_str(tag::PROCESS_NAME, &own);
                    }
                    if has_thread {
                        values.context_int(tag::THREAD, thread);
                    }
                    if names & 2 != 0 {
                        values.context_str(tag::THREAD_NAME, &own);
                    }
                    values.str("ann").int(thread);
                }),
            ));
        }
        records.push((Some(&placed), with(&|values| _ = values.context_str(tag::EXCEPTION, &own).str("ann").int(1))));
        records.push((Some(&placed), with(&|values| _ = values.field("user").str(&own).str("ann").int(1))));
        records.push((Some(&placed), with(&|values| _ = values.str("too few"))));
        records.push((Some(&placed), with(&|values| _ = values.str("too").int(1).str("many"))));
        records.push((Some(&placed), with(&|values| _ = values.float(0.5).int(1))));
    }
    for process_id in [0, 77] {
        let format = Format::compile(&FormatSpec::entry(process_id)).unwrap();
        for (site, values) in &records {
            // After some records that no program renders, a state does not try its program any more.
            let mut state = RenderState::default();
            for time_ns in times {
                let record = RecordView { time_ns, ..support::record(*site, values) };
                compare(&format, &record, &mut state);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no wcsftime")]
fn the_text_of_a_time_is_cached_only_while_the_time_is_the_same() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut values = Encoder::new();
    values.context_str(tag::MESSAGE, "m");
    for format in formats() {
        let mut state = RenderState::default();
        for _ in 0..ROUNDS / 20 {
            // Times around the start of a millisecond, from 1969 to 2262.
            let millis = random.below(9_223_372_036_800) as i64 - 3_000;
            let near = random.below(6_000) as i64 - 3_000;
            for time_ns in [millis * 1_000_000 + 500_000, millis * 1_000_000 + near] {
                let values = Values::new(&values.bytes);
                compare(&format, &RecordView { time_ns, level: 20, logger: "app", site: None, values }, &mut state);
            }
        }
    }
}

#[test]
fn fixed_decimals_are_rounded_as_display_rounds_them() {
    let mut random = Random(0x0dd0_1234_5678_9abc);
    let format = Format::compile(&FormatSpec::text(Style::Percent, "%(message)s")).unwrap();
    for decimals in 0..=17 {
        let site = support::site(Grammar::Percent, &format!("%.{decimals}f"));
        let mut state = RenderState::default();
        for _ in 0..ROUNDS {
            let number = random.double();
            if number.is_nan() || number.is_infinite() {
                continue;
            }
            let mut values = Encoder::new();
            values.float(number);
            let record = support::record(Some(&site), &values.bytes);
            let mut out = Vec::new();
            format.render(&record, &mut state, &mut out).unwrap();

            assert_eq!(format!("{number:.decimals$}\n").as_bytes(), out, "{number:e}");
            // A number that no program shows must not end the use of programs.
            if random.below(8) == 0 {
                state = RenderState::default();
            }
        }
    }
}
