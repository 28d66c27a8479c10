//! The command line. Each command has its own file.

mod buffered_stdout;
mod check;
mod client;
mod colour;
mod failure;
mod fields;
mod query;
mod recover;
mod serve;
mod service_manager;
mod stats;
mod tail;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use failure::CommandFailure;

/// Collect log records from many processes, store them, and find them again.
#[derive(Debug, Parser)]
#[command(name = "logspool", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[allow(clippy::large_enum_variant, reason = "there is one")]
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArguments),
    Query(query::QueryArguments),
    Fields(fields::FieldsArguments),
    Tail(tail::TailArguments),
    Stats(stats::StatsArguments),
    CheckConfig(check::CheckArguments),
    Recover(recover::RecoverArguments),
    /// Print the completions of a shell.
    ///
    /// For bash: `logspool completions bash > /etc/bash_completion.d/logspool`.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages into a folder: a page for this program, and one for each command.
    ///
    /// For all users: `logspool man /usr/local/share/man/man1`.
    Man {
        /// The folder. It must exist.
        folder: PathBuf,
    },
    /// Commands of the Python package: `run`, `doctor`.
    #[command(external_subcommand)]
    Python(Vec<OsString>),
}

/// How long to wait for a full pipe when an error is printed. Chosen: a slow reader reads within this time. If the
/// reader never reads, the program still ends, and a supervisor can restart it.
const ERROR_PRINT_TIME: Duration = Duration::from_secs(5);

/// Prints an error to stderr. Does not wait longer than [`ERROR_PRINT_TIME`] for its reader.
fn print_error(print: impl FnOnce() -> io::Result<()> + Send + 'static) {
    let (done, told) = mpsc::channel();
    let printing = std::thread::Builder::new().name("error".to_owned()).spawn(move || {
        // If printing fails, there is no way to report this.
        drop(print());
        let _ = done.send(());
    });
    if printing.is_ok() {
        let _ = told.recv_timeout(ERROR_PRINT_TIME);
    }
}

/// Parses the command line; prints help and errors.
fn parse_arguments() -> Result<Arguments, ExitCode> {
    Arguments::try_parse().map_err(|error| {
        let code = u8::try_from(error.exit_code()).unwrap_or(2);
        if error.use_stderr() {
            print_error(move || error.print());
        } else if error.print().is_err() {
            return ExitCode::from(1);
        }
        ExitCode::from(code)
    })
}

/// Runs the command that the command line names.
pub fn main() -> ExitCode {
    let given = match parse_arguments() {
        Ok(given) => given,
        Err(code) => return code,
    };
    let done = match given.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Query(arguments) => query::run(&arguments),
        Command::Fields(arguments) => fields::run(arguments),
        Command::Tail(arguments) => tail::run(&arguments),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::CheckConfig(arguments) => check::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Completions { shell } => completions(shell),
        Command::Man { folder } => man(&folder),
        Command::Python(arguments) => run_python(&arguments),
    };
    match done {
        Ok(()) | Err(CommandFailure::PipeClosed) => ExitCode::SUCCESS,
        Err(CommandFailure::Reported) => ExitCode::from(1),
        Err(CommandFailure::Failed(why)) => {
            print_error(move || writeln!(io::stderr(), "error: {why}"));
            ExitCode::from(1)
        }
        Err(CommandFailure::Usage(why)) => {
            print_error(move || writeln!(io::stderr(), "error: {why}"));
            ExitCode::from(2)
        }
    }
}

/// Prints the completions of a shell.
fn completions(shell: Shell) -> Result<(), CommandFailure> {
    // Generate into memory first, because the generator panics on a write error.
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "logspool", &mut text);
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    Ok(out.flush()?)
}

/// Writes the manual pages into a folder.
fn man(folder: &Path) -> Result<(), CommandFailure> {
    clap_mangen::generate_to(Arguments::command(), folder).map_err(|error| {
        let folder = folder.display();
        CommandFailure::Failed(format!("cannot write manual pages into {folder}: {error}"))
    })
}

/// Commands of the Python package.
const PYTHON_COMMANDS: [&str; 2] = ["run", "doctor"];

/// If the command belongs to the Python package, replaces this process with `python -m logspool`.
fn run_python(arguments: &[OsString]) -> Result<(), CommandFailure> {
    use std::os::unix::process::CommandExt;

    let word = arguments.first().and_then(|word| word.to_str()).unwrap_or_default();
    if !PYTHON_COMMANDS.contains(&word) {
        let why = format!("unknown command {word:?}: `logspool --help` lists the commands");
        return Err(CommandFailure::Usage(why));
    }
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let known = std::process::Command::new(&python).args(["-c", "import logspool"]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        let python = python.to_string_lossy();
        let why = format!(
            "`logspool {word}` needs the Python package: {python} -m pip install logspool (PYTHON=... for \
             another Python)"
        );
        return Err(CommandFailure::Failed(why));
    }
    let error = std::process::Command::new(&python).args(["-m", "logspool"]).args(arguments).exec();
    Err(CommandFailure::Failed(format!("cannot run {}: {error}", python.to_string_lossy())))
}
