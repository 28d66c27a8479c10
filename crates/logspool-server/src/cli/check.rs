//! `logspool check-config`.

use std::io::{self, Write};
use std::path::PathBuf;

use super::failure::CommandFailure;
use crate::config::Config;

/// Check a configuration and print its main settings. Nothing is opened.
#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The file (TOML).
    file: PathBuf,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<(), CommandFailure> {
    let config = Config::read(&arguments.file).map_err(CommandFailure::Failed)?;
    config.check().map_err(|why| CommandFailure::Failed(format!("{}: {why}", arguments.file.display())))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}: valid", arguments.file.display())?;
    for listen in &config.listen {
        writeln!(out, "listens at {listen}")?;
    }
    writeln!(out, "HTTP: {}", config.http)?;
    for store in &config.store {
        writeln!(out, "keeps records in {store}")?;
    }
    if let Some(file) = &config.file {
        writeln!(out, "writes lines to {}", file.display())?;
    }
    Ok(out.flush()?)
}
