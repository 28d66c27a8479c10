//! Destinations of sinks: their names for other processes, and a comparison of the destinations of two sinks.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use logspool_sys::kept::FileIdentity;

use super::query;

/// The destination of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file, a pipe or a device by its absolute path.
    File(String),
    /// A descriptor of the program.
    Descriptor(i32),
    /// Another program, by the address at which it listens.
    Address(String),
    /// The sink has no destination.
    Nowhere,
}

impl Place {
    /// The name in statistics, metrics and messages of a sink with this destination.
    pub fn name(&self, kind: &str) -> String {
        match self {
            Self::File(path) => path.clone(),
            Self::Descriptor(1) => "stdout".to_owned(),
            Self::Descriptor(2) => "stderr".to_owned(),
            Self::Descriptor(number) => format!("descriptor {number}"),
            Self::Address(address) => address.clone(),
            Self::Nowhere => kind.to_owned(),
        }
    }

    /// The path of the destination, if it is a file.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            Self::Descriptor(_) | Self::Address(_) | Self::Nowhere => None,
        }
    }

    /// The destination for a recoverer as text. `parts` are the sink's options, which `query.rs` encodes.
    pub fn recovery_address<'a>(&self, kind: &str, parts: impl Iterator<Item = (&'a str, String)>) -> Option<String> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Address(_) => Some(query::encode(kind, parts)),
            Self::Descriptor(_) | Self::Nowhere => None,
        }
    }
}

/// The file to which a descriptor refers. Two descriptors with equal values write to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkPlace {
    device: u64,
    inode: u64,
}

impl SinkPlace {
    /// The file to which a descriptor refers now. `None`: the descriptor is not open.
    pub fn of(descriptor: i32) -> Option<Self> {
        FileIdentity::of(descriptor).map(|FileIdentity { device, inode, .. }| Self { device, inode })
    }

    /// The file that a path names now. `None`: there is no such file.
    pub fn at(path: &Path) -> Option<Self> {
        let status = std::fs::metadata(path).ok()?;
        Some(Self { device: status.dev(), inode: status.ino() })
    }
}
