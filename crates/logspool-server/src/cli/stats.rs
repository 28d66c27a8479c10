//! `logspool stats`.

use std::io::{self, Write};

use super::client;
use super::failure::CommandFailure;
use crate::http::Stats;
use crate::visible::visible;

/// Print the state of a running service.
#[derive(Debug, clap::Args)]
pub(super) struct StatsArguments {
    #[command(flatten)]
    service: client::ServiceArguments,
    /// Print the service's answer as JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &StatsArguments) -> Result<(), CommandFailure> {
    let text = client::get_text(&arguments.service, "/api/stats", &[])?;
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", text.trim_end())?;
        return Ok(out.flush()?);
    }
    let stats: Stats = serde_json::from_str(&text).map_err(|error| {
        CommandFailure::Failed(format!("the service sent stats that this version of logspool cannot read: {error}"))
    })?;
    writeln!(out, "version      {}", stats.version)?;
    writeln!(out, "connections  {}", stats.connections)?;
    writeln!(out, "tails        {}", stats.tails)?;
    writeln!(out, "accepted     {} records", stats.records_accepted)?;
    writeln!(out, "dropped      {} records", stats.records_dropped)?;
    writeln!(out, "lost         {} datagrams, in the kernel", stats.datagrams_lost)?;
    writeln!(out, "undecoded    {} frames", stats.frames_rejected)?;
    writeln!(out, "waiting      {:.1} % of the budget", stats.waiting * 100.0)?;
    for store in stats.stores {
        writeln!(out, "store        {}", store.store)?;
        writeln!(out, "  stored       {}", store.records_stored)?;
        writeln!(out, "  repeated     {}", store.records_repeated)?;
        writeln!(out, "  missing      {} (expired: {})", store.records_missing, store.records_missing_expired)?;
        writeln!(out, "  quarantined  {}", store.records_quarantined)?;
        writeln!(out, "  refused      {}", store.records_refused)?;
        writeln!(out, "  outdated     {}", store.records_outdated)?;
        writeln!(out, "  errors       {}", store.errors)?;
        if let Some(trouble) = store.trouble {
            writeln!(out, "  trouble      {}", visible(&trouble))?;
        }
        for problem in store.problems {
            writeln!(out, "  problem      {}", visible(&problem))?;
        }
    }
    Ok(out.flush()?)
}
