//! Renders test cases from stdin, one per line, for the differential tests in `tests/python/format/`.
//!
//! A case is a line of words; text is hex. The first word selects the question:
//!
//! - `plan TEMPLATE KIND...`: `no` when the template is not deferrable, else one `ACCEPTANCE:TEXT` per directive.
//! - `render TEMPLATE VALUE...`: the message as hex, or `malformed`.
//! - `accept FORMAT... NAME=KIND...`: `unsupported`, or one acceptance per field.
//! - `line FORMAT... RECORD... NAME=VALUE...`: the line as hex, `unsupported`, or the error.
//! - `time COUNT FORMAT... RECORD... VALUE...`: nanoseconds per line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::time::Instant;

use logspool_record::cpython::{CpythonRules, TimeArithmetic};
use logspool_record::definition::{SiteDefinition, Zone};
use logspool_record::format::{
    ArgumentKind, CompiledSite, Extras, Format, FormatSpec, Layout, MessageTemplate, RecordView, RenderState,
    RenderedBy, Style,
};
use logspool_record::{Encoder, Values, tag};

fn main() {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("stdin holds text");
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let answer = match words.split_first() {
            Some((&"plan", rest)) => plan(rest),
            Some((&"render", rest)) => render(rest),
            Some((&"accept", rest)) => accept(&Case::parse(rest)),
            Some((&"line", rest)) => render_line(&Case::parse(rest)),
            Some((&"time", rest)) => time_line(rest),
            _ => "unknown case".to_owned(),
        };
        writeln!(out, "{answer}").expect("stdout takes every line");
    }
}

fn plan(words: &[&str]) -> String {
    let template = MessageTemplate::parse(&text(words[0]));
    if !template.deferrable() {
        return "no".to_owned();
    }
    let mut answer = "yes".to_owned();
    for (at, directive) in template.directives().iter().enumerate() {
        let acceptance = words.get(at + 1).map_or("missing", |word| acceptance(directive.accepts(kind(word))));
        write!(answer, " {acceptance}:{}", hex(directive.text().as_bytes())).expect("a string takes every byte");
    }
    answer
}

fn render(words: &[&str]) -> String {
    let template = MessageTemplate::parse(&text(words[0]));
    let mut encoder = Encoder::new();
    words[1..].iter().for_each(|word| push_value(&mut encoder, word));
    let mut out = Vec::new();
    match template.render(&mut Values::new(&encoder.bytes), &mut out) {
        Ok(()) => hex(&out),
        Err(_) => "malformed".to_owned(),
    }
}

/// A format and a record, given as `key=value` words; unknown keys are extra fields, in order.
struct Case<'a> {
    known: HashMap<&'a str, &'a str>,
    fields: Vec<(String, &'a str)>,
    arguments: Vec<&'a str>,
}

impl<'a> Case<'a> {
    fn parse(words: &[&'a str]) -> Self {
        let mut case = Self { known: HashMap::new(), fields: Vec::new(), arguments: Vec::new() };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) if key.starts_with('@') => case.fields.push((text(&key[1..]), value)),
                Some((key, value)) => {
                    case.known.insert(key, value);
                }
                None => case.arguments.push(word),
            }
        }
        case
    }

    fn text(&self, key: &str) -> Option<String> {
        self.known.get(key).map(|word| text(word))
    }

    fn number(&self, key: &str) -> i64 {
        self.known.get(key).and_then(|word| word.parse().ok()).unwrap_or(0)
    }

    fn spec(&self) -> FormatSpec {
        let template = self.text("template").unwrap_or_default();
        let style = match self.known.get("style") {
            Some(&"{") => Style::Brace,
            Some(&"$") => Style::Dollar,
            _ => Style::Percent,
        };
        let mut spec = FormatSpec::text(style, &template);
        if let Some(extras @ ("omit" | "append")) = self.known.get("json").copied() {
            let words: Vec<String> = template.split('\n').map(str::to_owned).collect();
            let fields = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            let extras = if extras == "append" { Extras::Append } else { Extras::Omit };
            spec.layout = Layout::Json { fields, extras };
        }
        spec.date_format = self.text("datefmt");
        if let Some(format) = self.text("timefmt") {
            spec.default_time_format = format;
        }
        if let Some(format) = self.text("msecfmt") {
            spec.default_msec_format = Some(format);
        }
        if self.known.contains_key("utc") {
            spec.zone = Zone::Utc;
        }
        let arithmetic = match self.known.get("arithmetic") {
            Some(&"fraction") => TimeArithmetic::FloatFraction,
            Some(&"whole") => TimeArithmetic::FloatWhole,
            _ => TimeArithmetic::Nanoseconds,
        };
        spec.start_time_ns = self.number("start");
        spec.cpython = CpythonRules::of_records(self.number("minor") as u8, arithmetic);
        spec.process_id = self.number("process") as u32;
        spec
    }

    fn site(&self) -> Option<CompiledSite> {
        Some(CompiledSite::new(SiteDefinition {
            file: self.text("file")?,
            line: self.number("lineno") as u32,
            function: self.text("function").unwrap_or_default(),
            template: self.text("msg"),
            ..SiteDefinition::default()
        }))
    }

    fn values(&self) -> Encoder {
        let mut encoder = Encoder::new();
        if self.known.contains_key("thread") {
            encoder.context_int(tag::THREAD, self.number("thread"));
        }
        for (key, tag) in [
            ("message", tag::MESSAGE),
            ("threadname", tag::THREAD_NAME),
            ("processname", tag::PROCESS_NAME),
            ("taskname", tag::TASK_NAME),
            ("exception", tag::EXCEPTION),
            ("stack", tag::STACK),
        ] {
            if let Some(text) = self.text(key) {
                encoder.context_str(tag, &text);
            }
        }
        for (name, value) in &self.fields {
            encoder.field(name);
            push_value(&mut encoder, value);
        }
        self.arguments.iter().for_each(|word| push_value(&mut encoder, word));
        encoder
    }
}

fn accept(case: &Case<'_>) -> String {
    let Ok(format) = Format::compile(&case.spec()) else { return "unsupported".to_owned() };
    let mut answer = "yes".to_owned();
    for (name, word) in &case.fields {
        answer.push(' ');
        answer.push_str(acceptance(format.accepts_field(name, kind(word))));
    }
    answer
}

fn render_line(case: &Case<'_>) -> String {
    let Ok(format) = Format::compile(&case.spec()) else { return "unsupported".to_owned() };
    let (site, values, logger) = (case.site(), case.values(), case.text("logger").unwrap_or_default());
    let record = RecordView {
        time_ns: case.number("time"),
        level: case.number("level") as u16,
        logger: &logger,
        site: site.as_ref(),
        values: Values::new(&values.bytes),
    };
    let mut out = Vec::new();
    match format.render(&record, &mut RenderState::default(), &mut out) {
        Ok(()) => hex(&out),
        Err(error) => format!("{error:?}"),
    }
}

fn time_line(words: &[&str]) -> String {
    let count: u32 = words[0].parse().expect("a number of lines");
    let case = Case::parse(&words[1..]);
    let format = Format::compile(&case.spec()).expect("a supported format");
    let (site, values, logger) = (case.site(), case.values(), case.text("logger").unwrap_or_default());
    let (first_ns, level) = (case.number("time"), case.number("level") as u16);
    let mut state = RenderState::default();
    let mut out = Vec::with_capacity(64 * 1024);
    let started = Instant::now();
    for at in 0..count {
        let record = RecordView {
            // One record every microsecond: the second changes as rarely as in a busy program.
            time_ns: first_ns + i64::from(at) * 1_000,
            level,
            logger: &logger,
            site: site.as_ref(),
            values: Values::new(&values.bytes),
        };
        format.render(&record, &mut state, &mut out).expect("the record fits");
        if out.len() > 60 * 1024 {
            std::hint::black_box(&out);
            out.clear();
        }
    }
    let nanoseconds = started.elapsed().as_nanos() as f64 / f64::from(count);
    format!("{nanoseconds:.1}")
}

fn kind(word: &str) -> ArgumentKind {
    match word {
        "none" => ArgumentKind::None,
        "bool" => ArgumentKind::Bool,
        "int" => ArgumentKind::Int,
        "bigint" => ArgumentKind::BigInt,
        "float" => ArgumentKind::Float,
        "ascii" => ArgumentKind::AsciiStr,
        "str" => ArgumentKind::Str,
        "bytes" => ArgumentKind::Bytes,
        _ => ArgumentKind::Other,
    }
}

const fn acceptance(acceptance: RenderedBy) -> &'static str {
    match acceptance {
        RenderedBy::Deferred => "deferred",
        RenderedBy::RenderInCaller => "caller",
        RenderedBy::Mismatch => "mismatch",
    }
}

fn push_value(encoder: &mut Encoder, word: &str) {
    let (kind, payload) = word.split_at(1);
    match kind {
        "n" => encoder.none(),
        "t" => encoder.bool(true),
        "f" => encoder.bool(false),
        "i" => encoder.int(payload.parse().expect("an integer")),
        "d" => encoder.float(f64::from_bits(u64::from_str_radix(payload, 16).expect("sixteen hex digits"))),
        "s" => encoder.str(&text(payload)),
        "b" => encoder.raw_bytes(&bytes(payload)),
        "r" => encoder.rendered(&text(payload)),
        // Decimal digits. `Encoder` has no method for them, because only capture sends them.
        "g" => {
            encoder.bytes.push(tag::BIG_INT);
            encoder.bytes.extend_from_slice(&(payload.len() as u32).to_ne_bytes());
            encoder.bytes.extend_from_slice(payload.as_bytes());
            encoder
        }
        _ => panic!("no such value: {word}"),
    };
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hex digits");
    (0..hex.len()).step_by(2).map(digit).collect()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).expect("UTF-8")
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string takes every byte"));
    text
}
