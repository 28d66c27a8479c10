//! 128 random bits that name a stream or a segment.

use std::fmt;

/// Name of a stream or of one life of a segment file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// Reads the id at byte `at`.
    pub(super) fn at(bytes: &[u8], at: usize) -> Self {
        Self(bytes[at..at + 16].try_into().expect("sixteen bytes"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
