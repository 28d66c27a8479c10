//! `logspool recover`.

use std::io::{self, Write};
use std::path::PathBuf;

use logspool::recover::{self, RecoverOptions, Undeliverable};
use logspool_sys::folder;

use super::failure::CommandFailure;

/// Deliver the records of killed programs.
///
/// Records for files are appended to them, and records for services are sent. Records for terminals and pipes of the
/// dead programs are dropped. Prints where records went. The exit code is 1 when some remain, with the reasons on
/// stderr.
#[derive(Debug, clap::Args)]
pub(super) struct RecoverArguments {
    /// The queue folder of the programs. Default: LOGSPOOL_QUEUE_DIR, else /dev/shm/logspool-UID.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: &RecoverArguments) -> Result<(), CommandFailure> {
    const NAME_THE_FOLDER: &str = "(fix: name the queue folder of the programs, /dev/shm/logspool-UID)";
    let configured = || std::env::var_os("LOGSPOOL_QUEUE_DIR").filter(|path| !path.is_empty()).map(PathBuf::from);
    // A missing default folder means that there are no records. A missing named folder is a mistake in the name.
    if let Some(named) = arguments.folder.as_ref().filter(|named| !named.exists()) {
        return Err(CommandFailure::Failed(format!(
            "cannot recover {}: the folder does not exist {NAME_THE_FOLDER}",
            named.display()
        )));
    }
    let folder = arguments.folder.clone().or_else(configured).unwrap_or_else(folder::default_path);
    let options = RecoverOptions { undeliverable: Undeliverable::Discard };
    let report = recover::recover(&folder, |_| true, options).map_err(|error| {
        let why = format!("cannot recover {}: {error}", folder.display());
        CommandFailure::Failed(match error.kind() {
            io::ErrorKind::NotADirectory => format!("{why} {NAME_THE_FOLDER}"),
            _ => why,
        })
    })?;
    let mut out = io::stdout().lock();
    for delivered in &report.delivered {
        writeln!(out, "{} written to {}", counted(delivered.records, "record"), delivered.path.display())?;
    }
    let discarded: u64 = report.removed.iter().map(|removed| removed.discarded).sum();
    if discarded > 0 {
        writeln!(out, "{} dropped: for terminals and pipes that are gone", counted(discarded, "record"))?;
    }
    if report.torn_lines > 0 {
        let lines = counted(report.torn_lines, "line");
        writeln!(out, "{lines} torn by a kill: ended without the rest")?;
    }
    if report.delivered.is_empty() && discarded == 0 && report.kept.is_empty() {
        writeln!(out, "nothing to deliver")?;
    }
    out.flush()?;
    for kept in &report.kept {
        let reasons: Vec<String> = kept.reasons.iter().map(ToString::to_string).collect();
        eprintln!("error: {} is not delivered: {}", kept.name, reasons.join("; "));
    }
    if report.kept.is_empty() { Ok(()) } else { Err(CommandFailure::Reported) }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
