//! Measures the time to format one line, as text, by a pattern of native programs, as JSON, as an object, as an entry
//! for a service, and by a pattern with the thread.
//!
//! `cargo bench -p logspool-record --bench format`. Prints the medians over interleaved rounds, and their ratios.

use std::hint::black_box;
use std::time::Instant;

use logspool_record::definition::SiteDefinition;
use logspool_record::format::{
    AssignedValue, CompiledSite, Extras, Format, FormatSpec, Need, ObjectSpec, RecordView, RenderState, Style,
};
use logspool_record::{Encoder, Values, tag};

const RECORDS: u32 = 10_000;
const ROUNDS: usize = 301;
/// The rounds cycle through this number of call sites, so that the cache of steady text works as in a usual program.
const SITES: usize = 8;

fn main() {
    let members = [
        ("time", "time"),
        ("level", "level"),
        ("logger", "logger"),
        ("message", "message"),
        ("file", "filename"),
        ("line", "lineno"),
        ("function", "funcName"),
        ("exception", "exception"),
        ("stack", "stack"),
    ];
    let template = "%(asctime)s %(levelname)s %(name)s:%(lineno)d %(message)s";
    let assigned = |(key, name): (&str, &str)| (key.to_owned(), AssignedValue::Attribute(name.to_owned()));
    let shown = [("asctime", "asctime"), ("levelname", "levelname"), ("name", "name"), ("message", "message")];
    let object = ObjectSpec { ascii: true, assignments: shown.map(assigned).to_vec(), ..ObjectSpec::default() };
    let mut formats = [
        ("text", FormatSpec::text(Style::Percent, template)),
        ("pattern", FormatSpec::pattern("{time:%Y-%m-%d %H:%M:%S.%3f} {level} {logger}:{line} {message}")),
        ("JSON", FormatSpec::json(&members, Extras::Append)),
        ("object", FormatSpec::object(object)),
        ("entry", FormatSpec::entry(77)),
        (
            "pattern with thread",
            FormatSpec::pattern("{time:%Y-%m-%d %H:%M:%S.%3f} {thread} {level} {logger} {message}"),
        ),
    ]
    .map(|(name, spec)| (name, Format::compile(&spec).unwrap(), RenderState::default(), Vec::new()));
    let sites: Vec<CompiledSite> = (0..SITES as u32)
        .map(|line| {
            CompiledSite::new(SiteDefinition {
                file: "/srv/app/main.py".to_owned(),
                line: 40 + line,
                function: "main".to_owned(),
                template: Some("user %s did %d in %.3f ms".to_owned()),
                ..SiteDefinition::default()
            })
        })
        .collect();
    let mut values = Encoder::new();
    let mut with_thread = Encoder::new();
    with_thread.context_int(tag::THREAD, 139_000_000_000_000).context_str(tag::THREAD_NAME, "worker");
    with_thread.str("ann").int(12345).float(3.25159);
    values.str("ann").int(12345).float(3.25159);
    let mut out = Vec::with_capacity(1 << 16);
    for _ in 0..ROUNDS {
        for (_, format, state, costs) in &mut formats {
            let has_thread = format.needs().contains(Need::ThreadId);
            let values = if has_thread { &with_thread.bytes } else { &values.bytes };
            let start = Instant::now();
            for number in 0..RECORDS {
                let record = RecordView {
                    time_ns: 1_700_000_000_000_000_000 + i64::from(number) * 1_000,
                    level: 20,
                    logger: "shop.cart",
                    site: Some(&sites[number as usize % SITES]),
                    values: Values::new(values),
                };
                out.clear();
                format.render(&record, state, &mut out).unwrap();
                black_box(&out);
            }
            costs.push(start.elapsed().as_nanos() as f64 / f64::from(RECORDS));
        }
    }
    let medians = formats.each_mut().map(|(name, _, _, costs)| {
        costs.sort_by(f64::total_cmp);
        println!("{name}: {:.0} ns a line, {:.0} to {:.0}", costs[ROUNDS / 2], costs[0], costs[ROUNDS - 1]);
        costs[ROUNDS / 2]
    });
    let [text, others @ ..] = medians;
    for ((name, ..), median) in formats[1..].iter().zip(others) {
        println!("{name} / text: {:.2}", median / text);
    }
}
