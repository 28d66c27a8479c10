//! Head and intent of a sidecar, as stored in it; `sidecar.rs` describes the layout.

use std::path::{Path, PathBuf};

use super::identity::Identity;

/// First eight bytes of every sidecar that was entered at least once.
const MAGIC: u64 = u64::from_le_bytes(*b"LOGSSIDE");
/// Layout version of sidecars. A sidecar of another version is neither read nor changed.
const VERSION: u64 = 1;

/// Size of the head in bytes, including the path.
pub const HEAD_BYTES: usize = 1024;
const PATH: usize = 64;

/// Offset of the intent in the sidecar.
pub const INTENT: u64 = HEAD_BYTES as u64;
/// Size of the intent in bytes.
pub const INTENT_BYTES: usize = 192;
const NAME: usize = 88;
/// Offset of a small copy in the sidecar.
pub const SMALL_COPY: u64 = INTENT + INTENT_BYTES as u64;
/// Maximum size of a small copy in bytes. A small copy ends at the end of the first page.
pub const SMALL_COPY_BYTES: usize = 4096 - SMALL_COPY as usize;
/// Offset of a large copy in the sidecar.
pub const LARGE_COPY: u64 = 4096;

/// Offset of the time of the next rotation, in the head.
pub const DUE: u64 = 40;
/// Offset of the number of torn lines, in the head.
pub const TORN: u64 = 48;

/// Flag: the intent ends a torn line with a line feed, because the remaining bytes of the line are not available.
const ENDS_LINE: u32 = 1;

/// The file to which a sidecar belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SidecarHead {
    /// Device and inode of the file.
    pub identity: Identity,
    /// Birth time of the file, in nanoseconds since the epoch; 0 if its file system does not record it.
    pub birth_ns: u64,
    /// Path of the file when the sidecar was made.
    pub path: PathBuf,
}

/// A begun append, as stored in a sidecar. The documentation of `sidecar.rs` explains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Number of the batch whose chunk is being appended.
    pub batch: u64,
    /// Offset in that chunk of the first byte to append.
    pub chunk_offset: u64,
    /// Number of bytes to append.
    pub length: u64,
    /// Size of the file before the append.
    pub file_bytes: u64,
    /// Offset of the copy in the sidecar; 0 if there was no room for one.
    pub copy_offset: u64,
    /// Time at which the intent was written, in nanoseconds of CLOCK_MONOTONIC.
    pub written_ns: u64,
    /// Id of the sink that appends.
    pub sink: u32,
    /// Whether the line after these bytes is torn and must be ended.
    pub ends_line: bool,
    /// Random identity of the segment that holds the batch.
    pub uuid: [u8; 16],
    /// NAME of the segment that holds the batch.
    pub owner: String,
}

/// Contents of the head of a sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The head was not written yet.
    New,
    /// The head is of an unknown version.
    Foreign,
    /// A valid head.
    Known(SidecarHead),
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
}

impl SidecarHead {
    /// The head as stored in the sidecar, with no time of rotation and no torn lines.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        use std::os::unix::ffi::OsStrExt;

        let mut bytes = [0; HEAD_BYTES];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, VERSION);
        put(&mut bytes, 16, self.identity.device);
        put(&mut bytes, 24, self.identity.inode);
        put(&mut bytes, 32, self.birth_ns);
        let path = self.path.as_os_str().as_bytes();
        if path.len() <= HEAD_BYTES - PATH {
            put(&mut bytes, 56, path.len() as u64);
            bytes[PATH..PATH + path.len()].copy_from_slice(path);
        }
        bytes
    }

    /// Decodes a stored head.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Read {
        use std::os::unix::ffi::OsStrExt;

        if word(bytes, 0) == 0 {
            return Read::New;
        }
        let path_bytes = word(bytes, 56);
        if word(bytes, 0) != MAGIC || word(bytes, 8) != VERSION || path_bytes > (HEAD_BYTES - PATH) as u64 {
            return Read::Foreign;
        }
        let path = &bytes[PATH..PATH + path_bytes as usize];
        Read::Known(Self {
            identity: Identity { device: word(bytes, 16), inode: word(bytes, 24) },
            birth_ns: word(bytes, 32),
            path: Path::new(std::ffi::OsStr::from_bytes(path)).to_owned(),
        })
    }
}

impl Intent {
    /// The intent as stored in the sidecar.
    pub fn encode(&self) -> [u8; INTENT_BYTES] {
        let mut bytes = [0; INTENT_BYTES];
        let words = [1, self.batch, self.chunk_offset, self.length, self.file_bytes, self.copy_offset, self.written_ns];
        for (index, word) in words.into_iter().enumerate() {
            put(&mut bytes, 8 * index, word);
        }
        bytes[56..60].copy_from_slice(&self.sink.to_ne_bytes());
        bytes[60..64].copy_from_slice(&(u32::from(self.ends_line) * ENDS_LINE).to_ne_bytes());
        bytes[64..80].copy_from_slice(&self.uuid);
        // NAME has at most 80 characters: three numbers and sixteen digits.
        let owner = &self.owner.as_bytes()[..self.owner.len().min(INTENT_BYTES - NAME)];
        put(&mut bytes, 80, owner.len() as u64);
        bytes[NAME..NAME + owner.len()].copy_from_slice(owner);
        bytes
    }

    /// Decodes a stored intent. Returns `None` if it is absent or invalid.
    pub fn decode(bytes: &[u8; INTENT_BYTES]) -> Option<Self> {
        let owner_bytes = word(bytes, 80);
        if word(bytes, 0) != 1 || owner_bytes > (INTENT_BYTES - NAME) as u64 {
            return None;
        }
        let owner = std::str::from_utf8(&bytes[NAME..NAME + owner_bytes as usize]).ok()?.to_owned();
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Some(Self {
            batch: word(bytes, 8),
            chunk_offset: word(bytes, 16),
            length: word(bytes, 24),
            file_bytes: word(bytes, 32),
            copy_offset: word(bytes, 40),
            written_ns: word(bytes, 48),
            sink: half(56),
            ends_line: half(60) & ENDS_LINE != 0,
            uuid: bytes[64..80].try_into().expect("sixteen bytes"),
            owner,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_intent_is_read_back() {
        let head = SidecarHead {
            identity: Identity { device: 0x801, inode: 77 },
            birth_ns: 5,
            path: PathBuf::from("/var/log/app.log"),
        };
        let intent = Intent {
            batch: u64::MAX,
            chunk_offset: 3,
            length: 9,
            file_bytes: 1 << 40,
            copy_offset: LARGE_COPY,
            written_ns: 11,
            sink: 129,
            ends_line: true,
            uuid: [7; 16],
            owner: "4026531836-42-99-00ff00ff00ff00ff".to_owned(),
        };

        assert_eq!(Read::Known(head.clone()), SidecarHead::decode(&head.encode()));
        assert_eq!(Some(intent.clone()), Intent::decode(&intent.encode()));
    }

    #[test]
    fn invalid_bytes_are_not_an_intent() {
        assert_eq!(Read::New, SidecarHead::decode(&[0; HEAD_BYTES]));
        assert_eq!(Read::Foreign, SidecarHead::decode(&[1; HEAD_BYTES]));
        assert_eq!(None, Intent::decode(&[0; INTENT_BYTES]));
        assert_eq!(None, Intent::decode(&[1; INTENT_BYTES]));
    }
}
