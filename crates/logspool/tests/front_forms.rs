//! The forms of calls that the macros of `std`, `log` and `tracing` take: each compiles, and writes what `format!` makes.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use logspool::front::{self, Extras, FormatSpec, Level, Output};
use logspool::pipeline::Options;
use logspool::{debug, error, info, record, trace, warn};
use logspool_record::format::Style;

#[derive(Debug)]
struct Point {
    x: i32,
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at {}", self.x)
    }
}

/// Names that a program may have, as the macros once had.
const SITE: u32 = 7;
const NAMES: &str = "names";
const TARGET: &str = "shop";

fn half(of: u32) -> Result<u32, String> {
    if of.is_multiple_of(2) { Ok(of / 2) } else { Err(format!("{of} is odd")) }
}

fn leaves_by_question_mark(of: u32) -> Result<(), String> {
    info!("half is {}", half(of)?);
    Ok(())
}

fn leaves_by_return(early: bool) -> u32 {
    info!("not left: {}", if early { return 1 } else { 2 });
    0
}

async fn later(value: u32) -> u32 {
    value
}

async fn awaits() {
    info!("awaited {} and {}", later(3).await, later(4).await);
}

fn run(future: impl Future<Output = ()>) {
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(Poll::Ready(()), pin!(future).poll(&mut context));
}

/// Makes the calls, and returns the lines that they write.
fn calls() -> Vec<String> {
    let (user, count, point) = ("ada", 3_u64, Point { x: 5 });
    let owned = String::from("owned");
    let thread = std::thread::spawn(|| 42);
    let mut expected = Vec::new();
    let mut line = |text: &str, keys: &str| expected.push(format!("{text}|{keys}"));

    info!("plain");
    line("plain", "");
    info!("trailing comma {}", 1,);
    line("trailing comma 1", "");
    info!("{{braces}} {}", user);
    line("{braces} ada", "");
    info!("captured {user} {count:>4}");
    line("captured ada    3", "");
    info!("named {who} {}", 1, who = user);
    line("named ada 1", "");
    info!("numbered {1} {0}", "a", "b");
    line("numbered b a", "");
    info!("width {:1$}", 7, 4);
    line("width    7", "");
    info!("precision {:.*}", 2, 1.5);
    line("precision 1.50", "");
    info!("site {} {}", SITE, NAMES);
    line("site 7 names", "");
    info!(concat!("con", "cat {}"), 1);
    line("concat 1", "");
    info!("joined {}", thread.join().unwrap());
    line("joined 42", "");
    info!("moved {}", { owned });
    line("moved owned", "");
    info!("block {}", { count + 1 });
    line("block 4", "");
    info!(
        "match {}",
        match count {
            3 => "three",
            _ => "other",
        }
    );
    line("match three", "");
    let nine = || 9;
    info!("closure {}", nine());
    line("closure 9", "");
    info!("reference {} {}", &count, &&user);
    line("reference 3 ada", "");
    info!("slice {}", &user[1..]);
    line("slice da", "");
    info!("display {}", front::display(&point));
    line("display at 5", "");
    info!("debug {}", front::debug(&point));
    line("debug Point { x: 5 }", "");
    assert_eq!(Ok(()), leaves_by_question_mark(8));
    line("half is 4", "");
    assert_eq!(Err("9 is odd".to_owned()), leaves_by_question_mark(9));
    assert_eq!((1, 0), (leaves_by_return(true), leaves_by_return(false)));
    line("not left: 2", "");
    run(awaits());
    line("awaited 3 and 4", "");

    info!(user = user; "keys");
    line("keys", r#","user":"ada""#);
    info!(user = user, count = count; "keys {}", 1);
    line("keys 1", r#","user":"ada","count":3"#);
    info!(user; "short");
    line("short", r#","user":"ada""#);
    info!(user, count; "short {}", 1);
    line("short 1", r#","user":"ada","count":3"#);
    info!(point:?; "short debug");
    line("short debug", r#","point":"Point { x: 5 }""#);
    info!(point:%, user; "short display");
    line("short display", r#","point":"at 5","user":"ada""#);
    info!(where_:? = point, user; "debug");
    line("debug", r#","where_":"Point { x: 5 }","user":"ada""#);
    info!(where_:% = point; "display");
    line("display", r#","where_":"at 5""#);
    info!(user, where_:% = point, n:? = Some(1); "mixed");
    line("mixed", r#","user":"ada","where_":"at 5","n":"Some(1)""#);
    info!("a-b" = 1; "text as key");
    line("text as key", r#","a-b":1"#);
    info!("a b":? = Some(2), user; "text as key");
    line("text as key", r#","a b":"Some(2)","user":"ada""#);
    info!(type_ = { count * 2 }, text = String::from("made"); "made");
    line("made", r#","type_":6,"text":"made""#);
    info!(order = 1, order = 2; "a key twice, as log keeps it");
    line("a key twice, as log keeps it", r#","order":1,"order":2"#);
    info!(target: "shop", "target");
    line("target", "");
    info!(target: TARGET, user; "target");
    line("target", r#","user":"ada""#);
    for number in 0..2 {
        let made = format!("made {number}");
        info!(target: made, "target {}", number);
        info!(target: &made[..4], "target {}", number);
        info!(target: if number == 0 { "first" } else { "quiet" }, user; "target {}", number);
        line(&format!("target {number}"), "");
        line(&format!("target {number}"), "");
        if number == 0 {
            line("target 0", r#","user":"ada""#);
        }
    }
    info!(user = user, "keys end with a comma, as in tracing {}", 1);
    line("keys end with a comma, as in tracing 1", r#","user":"ada""#);

    trace!("t");
    debug!("d {}", 1);
    warn!(user; "w");
    error!(user:?; "e {user}");
    record!(Level::Info, "r {}", 1);
    for (text, keys) in
        [("t", ""), ("d 1", ""), ("w", r#","user":"ada""#), ("e ada", r#","user":"\"ada\"""#), ("r 1", "")]
    {
        line(text, keys);
    }
    expected
}

#[test]
fn every_form_compiles_and_writes_the_text_of_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    front::builder()
        .output(Output::file(&path).format(FormatSpec::json(&[("message", "message")], Extras::Append)))
        .output(Output::file(folder.path().join("targets")).format(FormatSpec::text(Style::Percent, "%(name)s")))
        .level(Level::Trace)
        .level_for("quiet", Level::Error)
        .options(Options { queue_dir: Some(folder.path().join("queue")), ..Options::default() })
        .start()
        .unwrap();

    let expected = calls();

    assert!(front::flush(Duration::from_secs(60)));
    let text = std::fs::read_to_string(&path).unwrap();
    let shown: Vec<String> = text
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            let message = object["message"].as_str().unwrap().to_owned();
            let start = format!("{{\"message\":{}", object["message"]);
            format!("{message}|{}", line.strip_prefix(&start).unwrap().strip_suffix('}').unwrap())
        })
        .collect();
    assert_eq!(expected, shown);
    let targets = std::fs::read_to_string(folder.path().join("targets")).unwrap();
    let made: Vec<&str> = targets.lines().filter(|name| !name.starts_with("all::") && *name != "shop").collect();
    assert_eq!(["made 0", "made", "first", "made 1", "made"], made.as_slice());
}
