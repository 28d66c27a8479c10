//! Errors of the spool.

use std::path::Path;
use std::{fmt, io};

use super::disk::{DiskError, Operation};

/// Why a call to the spool failed. After a failed append the spool has not kept the batch.
#[derive(Debug)]
pub enum SpoolError {
    /// The disk refused the operation, in every folder that was tried.
    Disk(DiskError),
    /// The spool has reached `max_bytes`, and its policy is to refuse new batches.
    Full {
        /// Number of bytes in use.
        bytes: u64,
        /// Maximum number of bytes allowed.
        max_bytes: u64,
    },
    /// The batch is empty or larger than a frame.
    Size {
        /// Number of bytes of the batch.
        bytes: u64,
        /// Maximum number of bytes of a batch.
        max_bytes: u64,
    },
    /// The batch begins at a number that was used before.
    Order {
        /// First number of the batch.
        first: u64,
        /// The lowest number with which the batch may begin.
        next: u64,
    },
    /// No consumer has this id.
    NoConsumer(u64),
    /// The checkpoint has no room for another consumer.
    Consumers,
    /// An option is invalid; the text says which.
    Options(&'static str),
}

impl SpoolError {
    /// The error for a folder that cannot be made or opened.
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
