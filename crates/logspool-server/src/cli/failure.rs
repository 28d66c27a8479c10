//! Why a command ends without its answer, and with which exit code.

use std::io;

/// What a command comes to.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be done: exit code 1.
    Failed(String),
    /// It was asked for in a wrong way: exit code 2.
    Usage(String),
    /// Nobody reads the answer any more; not worth a word.
    Unread,
    /// It could not be done, and that was said: exit code 1.
    Said,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(error.to_string()),
        }
    }
}
