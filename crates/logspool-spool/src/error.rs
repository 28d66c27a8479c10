//! Why the spool did not do what it was asked.

use std::path::Path;
use std::{fmt, io};

use super::disk::{DiskError, Operation};

/// What a call to the spool can answer instead of a result. A batch that was not appended is still the caller's.
#[derive(Debug)]
pub enum SpoolError {
    /// The disk refused, in every folder that could be tried.
    Disk(DiskError),
    /// All the room is taken and the policy is to refuse.
    Full {
        /// Bytes taken.
        bytes: u64,
        /// Bytes allowed.
        max_bytes: u64,
    },
    /// No frame can hold the batch, or it holds nothing.
    Size {
        /// Bytes of the batch.
        bytes: u64,
        /// Bytes of the largest batch.
        max_bytes: u64,
    },
    /// The batch begins at a number that was used before.
    Order {
        /// First number of the batch.
        first: u64,
        /// The lowest number it may have.
        next: u64,
    },
    /// Nobody of this id was added.
    NoConsumer(u64),
    /// There is no room for another consumer in the checkpoint.
    Consumers,
    /// An option makes no sense; the text says which.
    Options(&'static str),
}

impl SpoolError {
    /// A folder that cannot be made or opened.
    pub fn folder(path: &Path, source: io::Error) -> Self {
        Self::Disk(DiskError { operation: Operation::Open, path: path.to_owned(), source })
    }
}

impl fmt::Display for SpoolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(formatter),
            Self::Full { bytes, max_bytes } => {
                write!(formatter, "cannot append to the spool: it takes {bytes} bytes of {max_bytes}")
            }
            Self::Size { bytes, max_bytes } => {
                write!(formatter, "cannot append a batch of {bytes} bytes: a frame holds 1 to {max_bytes}")
            }
            Self::Order { first, next } => {
                write!(formatter, "cannot append records from number {first}: {next} comes next")
            }
            Self::NoConsumer(consumer) => write!(formatter, "the spool has no consumer {consumer}"),
            Self::Consumers => write!(formatter, "cannot add a consumer: the checkpoint has no room"),
            Self::Options(text) => write!(formatter, "cannot open the spool: {text}"),
        }
    }
}

impl std::error::Error for SpoolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Disk(error) => Some(error),
            _ => None,
        }
    }
}

impl From<DiskError> for SpoolError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl From<SpoolError> for io::Error {
    fn from(error: SpoolError) -> Self {
        let kind = if let SpoolError::Disk(disk) = &error { disk.source.kind() } else { io::ErrorKind::Other };
        Self::new(kind, error.to_string())
    }
}
