//! Finds the next entry after a damaged one, so that the damage costs only that entry.
//!
//! Packed entries have no marks between them. An entry begins with a list of two values, whose first is a time; a
//! position counts as its start only if a whole entry can be read there, and another entry or the end follows.

use super::entry::EntryReader;
use super::msgpack::TokenReader;
use super::problem::ForwardError;

/// Number of positions in a message at which an entry is tried.
///
/// Chosen: an attempt may read all values of an entry, so a hostile message costs some milliseconds. One damaged entry
/// needs a few attempts.
const MAX_ATTEMPTS: u32 = 256;

/// An entry that cannot be read, in a message that is readable otherwise.
#[derive(Debug)]
pub struct DamagedEntry {
    /// Its bytes, decompressed.
    pub bytes: Vec<u8>,
    /// The error.
    pub error: ForwardError,
}

/// The search for the next entry.
#[derive(Debug)]
pub(super) struct EntrySearch {
    attempts: u32,
}

impl EntrySearch {
    /// A search in a message. `None`: the sender numbers its records, so no entry may be left out.
    pub fn new(entry: &EntryReader<'_>) -> Option<Self> {
        (entry.keeps_tag && !entry.is_bare).then_some(Self { attempts: MAX_ATTEMPTS })
    }

    /// The position of the first entry after the start of `bytes`.
    pub fn next(&mut self, bytes: &[u8], entry: &EntryReader<'_>) -> Option<usize> {
        for at in 1..bytes.len() {
            if !is_start(&bytes[at..]) {
                continue;
            }
            self.attempts = self.attempts.checked_sub(1)?;
            let mut reader = TokenReader::from(bytes, at);
            if entry.read(&mut reader).is_ok() && (reader.is_at_end() || is_start(&bytes[reader.at()..])) {
                return Some(at);
            }
        }
        None
    }
}

/// True if an entry may begin with these bytes: a list of two values, then a time, or a list of a time and metadata.
fn is_start(bytes: &[u8]) -> bool {
    let time = |bytes: &[u8]| {
        matches!(bytes, [0xD7, 0x00 | 0xFF, ..] | [0xC7, 8, 0, ..] | [0xCE | 0xCF | 0xCB | 0xD2 | 0xD3, ..])
    };
    match bytes {
        [0x92, 0x92, rest @ ..] | [0x92, rest @ ..] => time(rest),
        _ => false,
    }
}
