//! The command `logspool`.

use std::process::ExitCode;

fn main() -> ExitCode {
    logspool_server::cli::main()
}
