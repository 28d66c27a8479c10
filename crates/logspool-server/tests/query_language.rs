//! The meaning of queries, the errors of invalid ones, and writing a tree as text.

use crate::trees;

use logspool_server::query::parser::{MAX_BYTES, MAX_DEPTH, MAX_PATTERNS, MAX_PHRASE_WORDS, MAX_TERMS};
use logspool_server::query::{Comparison, Expression, Field, Filter, Literal, Pattern, Phrase, Stage, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// 2026-11-22T10:00:00Z.
const NOW: i64 = 1_795_341_600_000_000_000;
const HOUR: i64 = 3_600_000_000_000;

const EXPECTED_STAGE: &str = "expected a stage (count, stats, last, histogram, compare, where, sort, order, top, limit, fields, \
                              let, parse, patterns, errors, around, trace, facets)";

const END: &str = "expected `|` before the next stage, or the end of the query";

const EXPECTED_VALUE: &str =
    "expected a value or `)`: write FIELD in (a, \"b c\"), or quote \"in\" to search for the word";

fn phrase(text: &str) -> Filter {
    Filter::Phrase(Phrase::new(text).unwrap())
}

fn text(text: &str) -> Literal {
    Literal::Text(text.to_owned())
}

fn extra(key: &str) -> Field {
    Field::Extra(key.to_owned())
}

fn equal(field: Field, literal: Literal) -> Filter {
    Filter::Compare(field, Comparison::Equal, literal)
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

fn matches(field: Field, source: &str) -> Filter {
    Filter::Matches(field, Pattern::new(source).unwrap())
}

#[test]
fn queries_match_the_intended_records() {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    use Filter::{All, And, Compare, Or};
    for (expected, query) in [
        (All, ""),
        (All, "  "),
        (All, "*"),
        (phrase("disk"), "Disk"),
        (phrase("disk full"), r#""disk, FULL!""#),
        (phrase("a b com"), "a@b.com"),
        (phrase("or"), r#""or""#),
        (And(vec![phrase("a"), phrase("b"), phrase("c")]), "a b AND c"),
        (Or(vec![And(vec![phrase("a"), phrase("b")]), phrase("c")]), "a b or c"),
        (And(vec![phrase("a"), Or(vec![phrase("b"), phrase("c")])]), "a(b or c)"),
        (And(vec![not(phrase("a")), not(not(phrase("b")))]), "not a not not b"),
        (not(And(vec![phrase("a"), phrase("b")])), "not (a b)"),
        (phrase("a"), "((a))"),
        (Compare(Field::Level, GreaterOrEqual, Literal::Int(30)), "level>=warning"),
        (equal(Field::Level, Literal::Int(40)), "level = ERROR"),
        (equal(Field::Level, Literal::Int(35)), "level=35"),
        (equal(Field::Host, text("12")), "host=12"),
        (equal(Field::Host, text("null")), "host=null"),
        (Compare(Field::Logger, NotEqual, text("shop.cart")), "logger!=shop.cart"),
        (equal(Field::Process, Literal::Int(7)), "pid=7"),
        (equal(Field::Process, Literal::Int(7)), r#"process="7""#),
        (equal(Field::Thread, Literal::Int(7)), "thread=7"),
        (equal(Field::ThreadName, text("MainThread")), "thread=MainThread"),
        (equal(Field::ThreadName, text("7")), r#"thread="7""#),
        (matches(Field::ThreadName, "^Pool"), r#"thread~"^Pool""#),
        (equal(Field::Message, text(r#"a "b" \ \n"#)), r#"message="a \"b\" \\ \n""#),
        (Compare(Field::Time, GreaterOrEqual, Literal::Int(NOW)), "time>=2026-11-22T10:00:00Z"),
        (Compare(Field::Time, Less, Literal::Int(NOW - HOUR)), "time<-1h"),
        (Compare(Field::Time, LessOrEqual, Literal::Int(NOW)), r#"time<="2026-11-22 10:00""#),
        (equal(extra("status"), Literal::Int(503)), "status=503"),
        (equal(extra("status"), text("503")), r#"status="503""#),
        (Compare(extra("http.time"), Greater, Literal::Float(-1.5)), "http.time>-1.5"),
        (equal(extra("ok"), Literal::Bool(true)), "ok=true"),
        (Compare(extra("ok"), NotEqual, Literal::Null), "ok!=null"),
        (equal(extra("id"), text("007")), "id=007"),
        (equal(extra("id"), Literal::Large(18_446_744_073_709_551_615)), "id=18446744073709551615"),
        (equal(extra("id"), text("1e999")), "id=1e999"),
        (equal(extra("id"), text("True")), "id=True"),
        (equal(extra("level"), text("loud")), r#""level"=loud"#),
        (Or(vec![equal(extra("user"), text("u1")), equal(extra("user"), text("u2"))]), "user in (u1,u2)"),
        (
            Or(vec![equal(extra("n"), Literal::Int(1)), equal(extra("n"), text("b, c")), equal(extra("n"), text("1"))]),
            r#"n IN ( 1 , "b, c" "1" )"#,
        ),
        (equal(Field::Level, Literal::Int(40)), "level in (error)"),
        (not(Or(vec![equal(Field::Host, text("a")), equal(Field::Host, text("b"))])), "host not in (a b)"),
        (And(vec![phrase("in"), phrase("user"), Or(vec![phrase("a"), phrase("b")])]), "in user (a or b)"),
        (phrase("https example org a"), "https://example.org/a"),
        (
            And(vec![phrase("std vec"), phrase("c temp"), phrase("10 00"), phrase("error")]),
            r"std::vec C:\temp 10:00 error:",
        ),
        (phrase("level error"), r#""level:error""#),
        (phrase("select from"), r#""SELECT * FROM""#),
        (equal(extra("a b"), text("")), r#""a b"="""#),
        (matches(extra("path"), r"^/a\d|\\"), r#"path~"^/a\d|\\""#),
        (matches(Field::Message, r#"\"x\""#), r#"message~"\"x\"""#),
        (not(matches(Field::Host, "web")), "host!~web"),
        (Filter::Exists(extra("user")), "user exists"),
        (Filter::Exists(Field::TraceId), "trace_id=*"),
        (not(Filter::Exists(extra("a b"))), "\"a b\"!=*"),
        (And(vec![phrase("file"), phrase("exists")]), "file \"exists\""),
        (phrase("reconn*"), "Reconn*"),
        (not(phrase("out of memor*")), "not \"out of memor*\""),
        (equal(extra("items[*].sku"), text("A")), "items[*].sku=A"),
        (Compare(Field::Hour, Less, Literal::Int(6)), "time.hour<6"),
    ] {
        assert_eq!(Ok(Expression::from(expected)), parse(query, NOW), "{query}");
    }
}

#[test]
fn stages_follow_a_bar() {
    let histogram = |seconds: i64| Some(Stage::Histogram { interval_ns: seconds * 1_000_000_000 });
    for (expected, query) in [
        (Some(Stage::CountBy(Field::Level)), "| count by level"),
        (Some(Stage::CountBy(Field::Process)), "|COUNT BY pid"),
        (Some(Stage::CountBy(extra("level"))), r#"* | count by "level""#),
        (histogram(30), "|histogram 30s"),
        (histogram(60), "| histogram 1m"),
        (histogram(7_200), "| histogram 2h"),
        (histogram(86_400), "| histogram 1d"),
        (histogram(604_800), "| histogram 1w"),
        (histogram(5_400), "| histogram 1.5h"),
    ] {
        let found = parse(query, NOW).unwrap();

        assert_eq!((Filter::All, expected), (found.filter, found.stage), "{query}");
    }
}

#[test]
fn errors_have_the_position_and_a_fix() {
    let mut wrong = Vec::new();
    let no_time = "not a time: write 2026-11-22T10:00:00Z, 2026-11-22 10:00, 2026-11-22, yesterday, 15m (ago) or now";
    for (position, message, query) in [
        (0, "expected a field before `=`: write FIELD=VALUE", "=5"),
        (6, "expected a value", "level="),
        (6, "expected a value: to search for this text, quote it", "level==40"),
        (5, "expected a value: for a regular expression write `~` alone", r#"host=~"a""#),
        (2, "expected a value: to search for this text, quote it", "a=or b"),
        (6, "unknown level: write debug, info, warning, error, critical or a number", "level=loud"),
        (8, no_time, "a time>=soon"),
        (4, "pid is a whole number up to 18446744073709551615", "pid=x"),
        (7, "thread is a whole number up to 18446744073709551615", "thread=18446744073709551616"),
        (6, "level is a number: compare it with =, <, >, <= or >=", "level~4"),
        (4, "true, false and null have no order: compare with = or !=", "ok>=true"),
        (5, "`*` is not a wildcard: write ~\"regex\", or quote the text to search for it", "host=web-*"),
        (0, "`*` is a wildcard at the end of a word only: for another part of a word, write message~\"part\"", "ti*me"),
        (5, "`*` stands for any value: write FIELD=* or FIELD!=*", "host>*"),
        (2, "`:` is not an operator: write level=error, or quote the text to search for it", "a level:error"),
        (0, "`:` is not an operator: write service=checkout, or quote the text to search for it", "service:checkout"),
        (0, "`:` is not an operator: write level=VALUE, or quote the text to search for it", "level: error"),
        (0, "`:` is not an operator: write service=VALUE, or quote the text to search for it", r#"service:"a b""#),
        (0, "`:` is not an operator: leave it out, as in duration_ms>100", "duration_ms:>100"),
        (
            4,
            "`*` is a wildcard at the end only: for another part of a word write message~\"part\"",
            r#"not "out o* memory""#,
        ),
        (0, "this is no path: write items[*].sku or items[0].sku, or quote the key", "items[x].sku=A"),
        (9, "the query in parentheses returns whole records: end it with | fields FIELD", "user in (a | limit 5)"),
        (10, "a list has several values: compare it in a condition, or write items[0].sku", "|count by items[*].sku"),
        (
            9,
            "expected the id of a record: write | around ID 30s, or | around ID 10 (`id` of a record in JSON)",
            "| around 5 30s",
        ),
        (10, "expected a duration: write | compare 1d (s, m, h, d or w)", "| compare by host"),
        (8, "expected the id of a trace: write | trace ID", "| trace "),
        (10, "`errors` reads records: write it before | count, | stats or | fields", "| count | errors"),
        (11, EXPECTED_VALUE, "user in (a or b)"),
        (9, EXPECTED_VALUE, "user in ()"),
        (8, "this list is not closed: write `)` at its end", "user in (a"),
        (10, "unknown level: write debug, info, warning, error, critical or a number", "level in (loud)"),
        (2, "no letter or digit to search for: for other characters write message~\"...\"", "a ---"),
        (0, "`and` joins two conditions: to search for the word, write \"and\"", "and"),
        (4, "expected a word, a phrase or a comparison", "a or"),
        (5, "expected a word, a phrase or a comparison", "(not )"),
        (2, "this parenthesis is not closed: write `)` at its end", "a (b c"),
        (3, "no parenthesis is open here: remove `)`", "a b) c"),
        (2, "this quote is not closed: write \" at its end", "a \"b"),
        (1, "a query cannot contain a NUL character: remove it", "a\0"),
        (5, "invalid regular expression: unclosed group", r#"host~"a(b""#),
        (9, "expected a field with numbers: write | top 10 FIELD", "a | top 5"),
        (3, EXPECTED_STAGE, "a |"),
        (4, &format!("{EXPECTED_STAGE}: did you mean `limit`?"), "a | head 5"),
        (4, &format!("{EXPECTED_STAGE}: did you mean `where`?"), "a | wehre x=1"),
        (8, END, "| count level"),
        (10, "expected a field: write | count by FIELD", "| count by"),
        (11, "times are counted by interval: write | histogram 1m, or by time 1m", "| count by time"),
        (7, "expected `by`: write | last by FIELD", "| last host"),
        (9, "expected a field: write | last by FIELD", "| last by"),
        (14, "not a length of time: write 5m, or -5m for a clock ahead (ns, ms, s, m, h, d)", "arrival_delay>5"),
        (10, "expected a duration: write | histogram 1m (s, m, h, d or w)", "|histogram"),
        (12, "expected a duration: write | histogram 1m (s, m, h, d or w)", "| histogram 0m"),
        (12, "an interval has whole seconds: write | histogram 1s", "| histogram 1.5s"),
        (
            29,
            "these rows have no time: write | histogram 1m before | count or | stats",
            "| count by level | histogram 1m",
        ),
        (24, "expected a condition: write | where count > 10", "| count by level | where"),
        (
            24,
            "the rows have no column `cout` (did you mean `count`?): their columns are level, count",
            "| count by level | sort cout",
        ),
        (25, "the rows have no column `user`: their columns are level, count", "| count by level | where user=a"),
        (25, "the rows have no column `message`: their columns are level, count", "| count by level | where disk"),
        (7, "expected a function: write | stats count, sum(FIELD), p95(FIELD) by FIELD", "| stats"),
        (
            8,
            "unknown function `median` (did you mean `p50`?): there are count, sum, avg, min, max, p50, p95, p99, \
             distinct, first, last, and share",
            "| stats median(a)",
        ),
        (12, "expected `(`: write sum(FIELD)", "| stats sum a"),
        (12, "expected a field: write sum(FIELD)", "| stats sum()"),
        (21, "two columns are called `sum(a)`: rename one by `as NAME`", "| stats sum(a),sum(a)"),
        (6, "expected a whole number above 0: write | top 10 FIELD", "| top duration_ms"),
        (8, "expected a whole number above 0: write | limit 10", "| limit 0"),
        (8, "expected `=`: write | let NAME = a / b", "| let x a"),
        (13, "expected a column or a number: write | let NAME = a / b", "| let x = a /"),
        (15, "expected a regular expression: write | parse FIELD /text (?<name>\\w+)/", "| parse message"),
        (16, "invalid regular expression: unclosed group", "| parse message /(/"),
        (16, "this expression has no named groups: write | parse FIELD /text (?<name>\\w+)/", "| parse message /a/"),
        (16, "this expression is not closed: write / at its end", "| parse message /a"),
        (15, "expected a duration: write time 1h (s, m, h, d or w)", "|count by time 5"),
        (19, "expected a number above 0: write queue_ms 500", "|count by queue_ms 5x"),
        (15, "times have no sum, average or percentiles: write min, max, first or last", "| stats count, avg(time)"),
    ] {
        let error = parse(query, NOW).unwrap_err();
        if (position, message) != (error.position(), error.message()) {
            wrong.push(format!("{query}: {} {}", error.position(), error.message()));
        }
    }

    assert_eq!(Vec::<String>::new(), wrong);
}

#[test]
fn an_error_shows_its_place_below_the_text() {
    let printed = parse("漢字 \u{1b}[31m \"a\" level=loud", NOW).unwrap_err().to_string();

    let shown = "  漢字 \\x1b[31m \"a\" level=loud";
    let below = format!("  {}^", " ".repeat(24));
    let why = "unknown level: write debug, info, warning, error, critical or a number";
    assert_eq!(format!("cannot read the query: {why}\n{shown}\n{below}"), printed);
}

#[test]
fn a_query_is_bounded() {
    let nots = |count| "not ".repeat(count) + "a";
    let parentheses = |count| "(".repeat(count) + "a" + &")".repeat(count);
    let patterns = |count| "a~b ".repeat(count);
    for (most, more) in [
        (" ".repeat(MAX_BYTES), " ".repeat(MAX_BYTES + 1)),
        (nots(MAX_DEPTH), nots(MAX_DEPTH + 1)),
        (parentheses(MAX_DEPTH), parentheses(MAX_DEPTH + 1)),
        ("not ".repeat(MAX_DEPTH - 1) + "a!~b", "not ".repeat(MAX_DEPTH) + "a!~b"),
        ("a ".repeat(MAX_TERMS), "a ".repeat(MAX_TERMS + 1)),
        (patterns(MAX_PATTERNS), patterns(MAX_PATTERNS + 1)),
        (format!("\"{}\"", "a ".repeat(MAX_PHRASE_WORDS)), format!("\"{}\"", "a ".repeat(MAX_PHRASE_WORDS + 1))),
    ] {
        assert!(parse(&most, NOW).is_ok(), "{most}");
        assert!(parse(&more, NOW).is_err(), "{more}");
    }
    for text in
        ["(".repeat(MAX_BYTES), "ü".repeat(MAX_BYTES), "\"\\".repeat(8000), format!("a~\"{}\"", "(a*)".repeat(3000))]
    {
        drop(parse(&text, NOW).map_err(|error| error.to_string()));
    }
}

const STAGES: [&str; 22] = [
    "| count by host",
    "| count by \"a b\", time 1h, n 0.5",
    "| stats count, count(a) as x, sum(n), p99.9(n), share(level>=error (a or b)) by host",
    "| last by host",
    "| histogram 90s",
    "| histogram 1h by level",
    "| where count>5 or n>1",
    "| where \"sum(n)\">5 sum(n)<9",
    "| sort host desc, n",
    "| order asc",
    "| top 5 n by host",
    "| limit 7",
    "| fields time, host, \"a,b\", request.headers.agent",
    "| let x = (n + 1) * -count / 2.5 - \"sum(n)\"",
    "| let \"a b\" = sum(n) / n",
    "| parse message /a\\/(?<x>[|\"(]\\w+)/",
    "| patterns",
    "| errors new",
    "| compare 1d by host",
    "| around 1795341600000000000-0123456789ab 10 by host",
    "| trace 7f",
    "| where user in (level>=error | count by user | fields user) | limit 3",
];

fn stage() -> impl Strategy<Value = Option<Stage>> {
    prop_oneof![
        Just(None),
        "[a-z\" ]{0,8}".prop_map(|key| Some(Stage::CountBy(Field::Extra(key)))),
        Just(Some(Stage::CountBy(Field::ThreadName))),
        (1..100_000_i64).prop_map(|seconds| Some(Stage::Histogram { interval_ns: seconds * 1_000_000_000 })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_tree_is_parsed_back_unchanged(filter in trees::written_filter(), stage in stage()) {
        let expression = Expression { stage, ..Expression::from(filter) };
        let written = expression.to_string();
        let parsed = parse(&written, NOW).unwrap();

        prop_assert_eq!((expression.filter, expression.stage), (parsed.filter, parsed.stage), "{}", written);
    }

    #[test]
    fn written_stages_are_parsed_back_unchanged(stages in vec(select(&STAGES[..]), 0..4)) {
        let text = format!("* {}", stages.concat());
        if let Ok(parsed) = parse(&text, NOW) {
            prop_assert_eq!(Ok(parsed.clone()), parse(&parsed.to_string(), NOW), "{}", parsed);
        }
    }

    #[test]
    fn any_text_is_a_query_or_an_error_within_it(
        text in r#"([ -~üß\x00\t]|and |or |not |level|time|>=|!=|~|"|\(|\)|\| count by |\| stats |\| where |\| let x = |sum\(|p95\(|, ){0,40}"#,
    ) {
        match parse(&text, NOW) {
            Ok(query) => prop_assert_eq!(Ok(query.clone()), parse(&query.to_string(), NOW), "{}", query),
            Err(error) => {
                prop_assert!(error.position() <= text.len());
                prop_assert_eq!(3, error.to_string().lines().count());
            }
        }
    }
}
