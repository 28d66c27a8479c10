//! `logspool stats`.

use super::{Failure, ask};
use crate::http::Stats;

/// Say how a running service does.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    service: ask::Service,
    /// Print the JSON that the service sends.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let text = ask::text(&arguments.service, "/api/stats", &[])?;
    if arguments.json {
        println!("{}", text.trim_end());
        return Ok(());
    }
    let stats: Stats = serde_json::from_str(&text)
        .map_err(|error| Failure::Failed(format!("the service sends other stats than this logspool knows: {error}")))?;
    println!("version      {}", stats.version);
    println!("connections  {}", stats.connections);
    println!("tails        {}", stats.tails);
    println!("accepted     {} records", stats.records_accepted);
    println!("dropped      {} records", stats.records_dropped);
    println!("lost         {} datagrams, in the kernel", stats.datagrams_lost);
    println!("undecoded    {} frames", stats.frames_rejected);
    println!("waiting      {:.1} % of the budget", stats.waiting * 100.0);
    for store in stats.stores {
        println!("store        {}", store.store);
        println!("  stored       {}", store.records_stored);
        println!("  repeated     {}", store.records_repeated);
        println!("  missing      {}", store.records_missing);
        println!("  quarantined  {}", store.records_quarantined);
        println!("  refused      {}", store.records_refused);
        println!("  errors       {}", store.errors);
        if let Some(trouble) = store.trouble {
            println!("  trouble      {trouble}");
        }
    }
    Ok(())
}
