//! The failures of commands, which decide the exit code.

use std::io;

/// The failure of a command.
#[derive(Debug)]
pub(super) enum CommandFailure {
    /// The command failed: exit code 1.
    Failed(String),
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The reader has closed the pipe. This is not reported, and the exit code is 0.
    PipeClosed,
    /// The command failed and has reported the error: exit code 1.
    Reported,
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Failed(error.to_string()),
        }
    }
}
