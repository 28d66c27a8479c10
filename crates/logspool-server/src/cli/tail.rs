//! `logspool tail`. It connects again when its service goes away, and fetches the records that arrived meanwhile.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, StdoutLock};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::client;
use super::colour::ColourChoice;
use super::failure::CommandFailure;
use crate::clock::now_ns;
use crate::http;
use crate::query::time::parse_time;
use crate::query::{self, Comparison, Expression, Field, Filter, Literal};
use crate::record::Record;
use crate::remarks::{LeftOut, Remarks};
use crate::show::{Format, Output};
use crate::stores::AnswerRow;

/// Pauses between attempts to connect again: the first and the longest.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(8)];

/// Time without a line after which the connection counts as lost. Chosen: the service sends an empty event every 15
/// seconds.
const SILENCE: Duration = Duration::from_secs(60);

/// Maximum number of records that are fetched after a reconnection.
const MAX_FETCHED: u64 = 10_000;

/// Records may be shown in another order than they arrived. A record that arrived by this time before the newest one, in
/// nanoseconds, may still be missing. Chosen: the service stores and shows a record within far less time.
const OVERLAP_NS: i64 = 5_000_000_000;

/// A time after all records.
const END: &str = "2262-01-01T00:00:00Z";

/// Print new records as they arrive, until Ctrl-C. Connects again when the service goes away.
#[derive(Debug, clap::Args)]
pub(super) struct TailArguments {
    /// Query that selects the records, as for `logspool query`; default: all records.
    #[arg(default_value = "")]
    expression: String,
    #[command(flatten)]
    service: client::ServiceArguments,
    /// First print the records that arrived since this time: 5m, 1h (ago), or a time as 2026-11-22T10:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// When to colour text.
    #[arg(long, value_enum, default_value = "auto")]
    color: ColourChoice,
}

pub(super) fn run(arguments: &TailArguments) -> Result<(), CommandFailure> {
    let begins = now_ns();
    let expression =
        query::parse(&arguments.expression, begins).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    // Each line has to appear at once. Rust's stdout is line buffered.
    let output = Output::new(io::stdout().lock(), arguments.format, None, arguments.color.text_style());
    let since = arguments.since.as_deref().map(|text| parse_time(text, begins)).transpose();
    let since = since.map_err(|error| CommandFailure::Usage(format!("--since: {error}")))?;
    let mut tail = ReconnectingTail {
        service: &arguments.service,
        expression,
        output,
        newest: since.map_or(begins, |since| since.saturating_add(OVERLAP_NS)),
        shown: VecDeque::new(),
        fetched: HashMap::new(),
    };
    let mut lost = tail.follow(since.map_or(Start::Now, |_| Start::Since))?;
    loop {
        eprintln!("{lost}; connecting again ...");
        let mut pause = RETRY_PAUSES[0];
        lost = loop {
            thread::sleep(pause);
            pause = (2 * pause).min(RETRY_PAUSES[1]);
            match tail.follow(Start::Again) {
                // The service is still away, or it does not accept the request now.
                Err(CommandFailure::Failed(_)) => {}
                done => break done?,
            }
        };
    }
}

/// Which records a connection shows first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// New records only.
    Now,
    /// Those since the time that was asked for.
    Since,
    /// Those that arrived while there was no connection.
    Again,
}

/// A live tail over several connections.
struct ReconnectingTail<'a> {
    service: &'a client::ServiceArguments,
    expression: Expression,
    output: Output<StdoutLock<'a>>,
    /// Time of arrival of the newest shown record, or the start of the tail.
    newest: i64,
    /// The shown records that arrived within [`OVERLAP_NS`] before the newest, with their times of arrival.
    shown: VecDeque<(i64, String)>,
    /// The records that were fetched after the last reconnection and may also come over the connection, with their
    /// numbers.
    fetched: HashMap<String, u64>,
}

impl ReconnectingTail<'_> {
    /// Shows records until the connection is lost, and returns why.
    fn follow(&mut self, start: Start) -> Result<String, CommandFailure> {
        let body = client::get_body(self.service, "/api/tail", &[("q", &self.expression.to_string())])?;
        let (sender, lines) = mpsc::sync_channel(1_000);
        // Reading has no time limit, so that another thread does it. It ends with the connection or the program.
        thread::spawn(move || BufReader::new(body).lines().try_for_each(|line| sender.send(line)));
        if start == Start::Again {
            eprintln!("connected again");
        }
        if start != Start::Now {
            // The service holds new records back meanwhile, so none are lost between the two requests.
            self.fetch_missed()?;
        }
        let mut event = String::new();
        loop {
            let line = match lines.recv_timeout(SILENCE) {
                Ok(Ok(line)) => line,
                Ok(Err(error)) => return Ok(format!("the connection to the service failed: {error}")),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Ok("the service has closed the connection".to_owned());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Ok(format!("the service has sent nothing for {SILENCE:?}"));
                }
            };
            if let Some(name) = line.strip_prefix("event:") {
                name.trim().clone_into(&mut event);
            } else if let Some(data) = line.strip_prefix("data:") {
                match &*event {
                    "missed" => {
                        eprintln!("missed {} records: they arrived faster than they could be shown", data.trim());
                    }
                    _ => self.show(data)?,
                }
            } else if line.is_empty() {
                event.clear();
            }
        }
    }

    /// Shows a record of the connection, unless it was fetched before.
    fn show(&mut self, json: &str) -> Result<(), CommandFailure> {
        let Some(record) = Record::from_json(json) else { return Ok(()) };
        match take(&mut self.fetched, &identity(&record)) {
            true => Ok(()),
            false => self.print(record),
        }
    }

    fn print(&mut self, record: Record<'_>) -> Result<(), CommandFailure> {
        let (arrived, identity) = (record.arrived_ns.unwrap_or(self.newest), identity(&record));
        self.output.row(&AnswerRow::Record(record))?;
        self.newest = self.newest.max(arrived);
        self.shown.push_back((arrived, identity));
        let since = self.newest.saturating_sub(OVERLAP_NS);
        while self.shown.front().is_some_and(|(arrived, _)| *arrived < since) {
            self.shown.pop_front();
        }
        Ok(())
    }

    /// Fetches and shows the records that arrived while there was no connection.
    fn fetch_missed(&mut self) -> Result<(), CommandFailure> {
        let since = Literal::Int(self.newest.saturating_sub(OVERLAP_NS));
        let arrived = Filter::Compare(Field::Arrived, Comparison::GreaterOrEqual, since);
        let filter = Filter::And(vec![arrived, self.expression.filter.clone()]);
        let expression = Expression::from(filter).to_string();
        let limit = MAX_FETCHED.to_string();
        let asked = [("q", &*expression), ("until", END), ("limit", &*limit)];
        let body = match client::get_body(self.service, "/api/query", &asked) {
            Ok(body) => body,
            Err(CommandFailure::Failed(why) | CommandFailure::Usage(why)) => {
                eprintln!("the records that arrived meanwhile cannot be shown: {why}");
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let mut lines = Vec::new();
        for line in BufReader::new(body).lines() {
            let line = line.map_err(|error| CommandFailure::Failed(format!("the answer was interrupted: {error}")))?;
            if let Some(why) = http::reason(&line) {
                eprintln!("some records that arrived meanwhile cannot be shown: {why}");
            } else if let Some(remarks) = Remarks::from_json(&line) {
                match remarks.left_out {
                    LeftOut::Nothing => {}
                    LeftOut::Rows(count) => eprintln!("missed {count} records: too many arrived meanwhile"),
                    LeftOut::Unknown => eprintln!("missed records: too many arrived meanwhile"),
                }
            } else {
                lines.push(line);
            }
        }
        let mut known = HashMap::new();
        self.shown.iter().for_each(|(_, identity)| *known.entry(identity.clone()).or_insert(0) += 1);
        self.fetched.clear();
        // The answer has the newest record first.
        for record in lines.iter().rev().filter_map(|line| Record::from_json(line)) {
            let identity = identity(&record);
            if !take(&mut known, &identity) {
                self.print(record)?;
                *self.fetched.entry(identity).or_insert(0) += 1;
            }
        }
        Ok(())
    }
}

/// Text that is equal for the same record of a connection and of a store, which may return the keys in another order.
fn identity(record: &Record<'_>) -> String {
    let mut record = record.clone();
    record.fields.sort_by(|(one, _), (other, _)| one.cmp(other));
    format!("{record:?}")
}

/// Takes one of the records with this identity. Returns false if there is none.
fn take(from: &mut HashMap<String, u64>, identity: &str) -> bool {
    match from.get_mut(identity) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}
