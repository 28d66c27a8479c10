//! Random filters, and random records that match some of them.

use logspool_server::query::{Comparison, Field, Filter, Literal, Pattern, Phrase};
use logspool_server::record::{LinePart, Record};
use logspool_server::value::Value;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const WORDS: [&str; 12] = ["disk", "full", "Disk", "FULL", "web-1", "web-2", "ü", "İ", "42", "a\u{301}b", "", "x_y z"];

const KEYS: [&str; 18] = [
    "user",
    "id",
    "user[*].id",
    "user[1]",
    "status",
    "user.id",
    "a\"b",
    "[0]",
    "$",
    "$.x",
    "",
    "ключ",
    "back\\slash",
    "level",
    "x y",
    "#",
    "or",
    "e\u{1}",
];

const PATTERNS: [&str; 9] = ["", "^disk", "full$", "(?i)DISK", r"\d+", r#"a\"b"#, "[wü]", r"\\", "true|null"];

/// Random text that is often equal.
fn text() -> impl Strategy<Value = String> {
    let random = any::<String>().prop_map(|text| text.replace('\0', ""));
    prop_oneof![
        6 => vec(select(&WORDS[..]), 1..4).prop_map(|words| words.join(" ")),
        4 => select(&WORDS[..]).prop_map(str::to_owned),
        1 => random,
    ]
}

fn key() -> impl Strategy<Value = String> {
    select(&KEYS[..]).prop_map(str::to_owned)
}

fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -3..60_i64, 1 => any::<i64>(), 1 => select(&[i64::MIN, i64::MAX, (1 << 53) + 1][..])]
}

/// An integer that is kept as text.
fn large() -> impl Strategy<Value = i128> {
    select(vec![1 << 63, (1 << 63) + 1, 1 << 64, 10_i128.pow(37), -(1 << 63) - 1, -(1 << 64)])
}

fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-6..100_i32).prop_map(|halves| f64::from(halves) / 2.0),
        1 => any::<f64>().prop_filter("JSON has no other numbers", |number| number.is_finite()),
        1 => select(&[0.1, 1e22, -0.0, 9_007_199_254_740_992.0, 9.223_372_036_854_775e18][..]),
    ]
}

fn value() -> impl Strategy<Value = Value<'static>> {
    let flat = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        whole().prop_map(Value::Int),
        fraction().prop_map(Value::Float),
        text().prop_map(Value::text),
        large().prop_map(|number| Value::text(number.to_string())),
        Just(Value::text("a\0b")),
    ];
    flat.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::List),
            vec((key().prop_map(Into::into), inner), 0..3).prop_map(Value::Map),
        ]
    })
}

/// Any record with a time.
pub fn record() -> impl Strategy<Value = Record<'static>> {
    let id = || option::of(prop_oneof![4 => 0..60_u64, 1 => any::<u64>(), 1 => select(vec![1 << 63, u64::MAX])]);
    let part = || option::of(text().prop_map(Into::into));
    let numbers = (whole(), option::of(0..60_i64), 0..60_u16, option::of(0..60_u32), id(), id());
    let texts = (text(), text(), [part(), part(), part(), part(), part()], [part(), part(), part(), part(), part()]);
    let fields = vec((key().prop_map(Into::into), value()), 0..4);
    (numbers, texts, fields).prop_map(|((time_ns, arrived_ns, level, line, process, thread), texts, fields)| {
        let (logger, message, some, others) = texts;
        let [file, function, host, process_name, thread_name] = some;
        let [task, trace_id, span_id, exception, stack] = others;
        Record {
            time_ns: Some(time_ns),
            arrived_ns,
            level,
            sent_level: None,
            lacks_zone: false,
            part: LinePart::Whole,
            logger: logger.into(),
            message: message.into(),
            file,
            line,
            function,
            host,
            process,
            process_name,
            thread,
            thread_name,
            task,
            trace_id,
            span_id,
            exception,
            stack,
            fields,
        }
    })
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    select(&[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual][..])
}

fn text_field() -> impl Strategy<Value = Field> {
    select(vec![
        Field::Logger,
        Field::Message,
        Field::File,
        Field::Function,
        Field::Host,
        Field::ProcessName,
        Field::ThreadName,
        Field::Task,
        Field::TraceId,
        Field::SpanId,
        Field::Exception,
        Field::Stack,
    ])
}

fn number_field() -> impl Strategy<Value = Field> {
    select(vec![
        Field::Time,
        Field::Arrived,
        Field::ArrivalDelay,
        Field::Hour,
        Field::Weekday,
        Field::Level,
        Field::Line,
        Field::Process,
        Field::Thread,
    ])
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        whole().prop_map(Literal::Int),
        large().prop_map(Literal::Large),
        fraction().prop_map(Literal::Float),
        text().prop_map(Literal::Text),
        any::<bool>().prop_map(Literal::Bool),
        Just(Literal::Null),
    ]
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![text_field(), number_field(), key().prop_map(Field::Extra)]
}

fn pattern() -> impl Strategy<Value = Pattern> {
    select(&PATTERNS[..]).prop_map(|source| Pattern::new(source).unwrap())
}

/// Conditions that a query can express.
fn written() -> impl Strategy<Value = Filter> {
    let compare = |(field, comparison, literal)| Filter::Compare(field, comparison, literal);
    let ordered = prop_oneof![
        whole().prop_map(Literal::Int),
        large().prop_map(Literal::Large),
        fraction().prop_map(Literal::Float),
        text().prop_map(Literal::Text),
    ];
    let equal = select(&[Comparison::Equal, Comparison::NotEqual][..]);
    let unordered = prop_oneof![any::<bool>().prop_map(Literal::Bool), Just(Literal::Null)];
    let extra = || key().prop_map(Field::Extra);
    let number = (number_field(), whole()).prop_map(|(field, number)| {
        // A negative integer cannot be written for a thread: such a word is read as the name of a thread.
        let number = if field == Field::Thread { number.max(0) } else { number };
        (field, Literal::Int(number))
    });
    let number = (number, comparison());
    prop_oneof![
        1 => Just(Filter::All),
        4 => text().prop_filter_map("it has words", |text| Phrase::new(&text).map(Filter::Phrase)),
        2 => text().prop_filter_map("it has words", |text| Phrase::new(&(text + "*")).map(Filter::Phrase)),
        2 => prop_oneof![text_field(), number_field(), extra()].prop_map(Filter::Exists),
        4 => number.prop_map(|((field, literal), comparison)| Filter::Compare(field, comparison, literal)),
        1 => (select(vec![Field::Process, Field::Thread]), comparison(), select(vec![1 << 63, (1 << 64) - 1]))
            .prop_map(|(field, comparison, number)| Filter::Compare(field, comparison, Literal::Large(number))),
        4 => (text_field(), comparison(), text().prop_map(Literal::Text)).prop_map(compare),
        4 => (extra(), comparison(), ordered).prop_map(compare),
        2 => (extra(), equal, unordered).prop_map(compare),
        2 => (prop_oneof![text_field(), extra()], pattern()).prop_map(|(field, pattern)| Filter::Matches(field, pattern)),
    ]
}

fn tree(leaf: impl Strategy<Value = Filter> + 'static) -> impl Strategy<Value = Filter> {
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..5).prop_map(Filter::And),
            vec(inner.clone(), 2..5).prop_map(Filter::Or),
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

/// Filters that a query can express.
pub fn written_filter() -> impl Strategy<Value = Filter> {
    tree(written())
}

/// Any filter, also with comparisons of different types.
pub fn filter() -> impl Strategy<Value = Filter> {
    tree(prop_oneof![
        4 => written(),
        1 => (field(), comparison(), literal()).prop_filter_map("a delay fits", |(field, comparison, literal)| {
            let fits = field != Field::ArrivalDelay || !matches!(literal, Literal::Large(_));
            fits.then_some(Filter::Compare(field, comparison, literal))
        }),
        1 => (field(), pattern()).prop_map(|(field, pattern)| Filter::Matches(field, pattern)),
        1 => select(vec![Filter::And(Vec::new()), Filter::Or(Vec::new())]),
    ])
}
