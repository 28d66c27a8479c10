//! Destinations of sinks: their names for other processes, and a comparison of the destinations of two sinks.

use super::query;

/// What identifies the destination of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A file, a pipe or a device by its absolute path.
    File(String),
    /// A descriptor of the program.
    Descriptor(i32),
    /// Another program, by the address at which it listens.
    Address(String),
    /// There is none.
    Nowhere,
}

impl Place {
    /// The name of a sink of this place in statistics, metrics and messages.
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

    /// The path of a file.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::File(path) => Some(path),
            Self::Descriptor(_) | Self::Address(_) | Self::Nowhere => None,
        }
    }

    /// What a recoverer needs to deliver there, with `parts` as the options: see `query.rs`.
    pub fn recovery_address<'a>(&self, kind: &str, parts: impl Iterator<Item = (&'a str, String)>) -> Option<String> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Address(_) => Some(query::encode(kind, parts)),
            Self::Descriptor(_) | Self::Nowhere => None,
        }
    }
}

/// What a descriptor refers to: two with the same file behind them write to the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinkPlace {
    device: u64,
    inode: u64,
}

impl SinkPlace {
    /// What a descriptor refers to now; `None` when it is not open.
    pub fn of(descriptor: i32) -> Option<Self> {
        // SAFETY: an all-zero stat is a valid value of that plain struct.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fstat checks the number itself; `status` is a valid place for the result.
        let found = unsafe { libc::fstat(descriptor, &mut status) } == 0;
        found.then_some(Self { device: status.st_dev, inode: status.st_ino })
    }
}
