//! `logspool tail`.

use std::io::{self, BufRead, BufReader};

use super::client;
use super::colour::ColourChoice;
use super::failure::CommandFailure;
use crate::clock::now_ns;
use crate::query;
use crate::record::Record;
use crate::show::{Format, Output};
use crate::stores::AnswerRow;

/// Print new records as they arrive, until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(super) struct TailArguments {
    /// Query that selects the records, as for `logspool query`; default: all records.
    #[arg(default_value = "")]
    expression: String,
    #[command(flatten)]
    service: client::ServiceArguments,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// When to colour text.
    #[arg(long, value_enum, default_value = "auto")]
    color: ColourChoice,
}

pub(super) fn run(arguments: &TailArguments) -> Result<(), CommandFailure> {
    let expression =
        query::parse(&arguments.expression, now_ns()).map_err(|error| CommandFailure::Usage(error.to_string()))?;
    let body = client::get_body(&arguments.service, "/api/tail", &[("q", &expression.to_string())])?;
    // Each line has to appear at once. Rust's stdout is line buffered.
    let mut output = Output::new(io::stdout().lock(), arguments.format, None, arguments.color.text_style());
    let mut event = String::new();
    for line in BufReader::new(body).lines() {
        let line =
            line.map_err(|error| CommandFailure::Failed(format!("the connection to the service failed: {error}")))?;
        if let Some(name) = line.strip_prefix("event:") {
            name.trim().clone_into(&mut event);
        } else if let Some(data) = line.strip_prefix("data:") {
            match &*event {
                "missed" => eprintln!("missed {} records: they arrived faster than they could be shown", data.trim()),
                _ => {
                    if let Some(record) = Record::from_json(data) {
                        output.row(&AnswerRow::Record(record))?;
                    }
                }
            }
        } else if line.is_empty() {
            event.clear();
        }
    }
    Err(CommandFailure::Failed("the service has closed the connection".to_owned()))
}
