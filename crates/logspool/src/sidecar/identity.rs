//! The identity of the log file to which a sidecar belongs, and the sidecar's name.

use std::ffi::c_char;
use std::os::unix::fs::MetadataExt;

/// Device and inode. They identify a file, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Device number of the file.
    pub device: u64,
    /// Inode number of the file.
    pub inode: u64,
}

/// Maximum length in bytes of a sidecar's name as a C string.
const NAME_BYTES: usize = 48;

impl Identity {
    /// Identity of a file with this metadata.
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Name of the file's sidecar.
    pub fn file_name(&self) -> String {
        format!("file-{:x}-{:x}.side", self.device, self.inode)
    }

    /// Identity of the file to which a sidecar of this name belongs.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let (device, inode) = name.strip_prefix("file-")?.strip_suffix(".side")?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let identity = Self { device: number(device)?, inode: number(inode)? };
        (identity.file_name() == name).then_some(identity)
    }

    /// The name of the file's sidecar, made without allocation, for a signal handler.
    pub(super) fn c_name(&self) -> [c_char; NAME_BYTES] {
        let mut name = [0; NAME_BYTES];
        let mut length = 0;
        let mut put = |text: &[u8]| {
            for byte in text {
                name[length] = *byte as c_char;
                length += 1;
            }
        };
        put(b"file-");
        for (number, behind) in [(self.device, &b"-"[..]), (self.inode, b".side")] {
            let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
            for digit in (0..digits).rev() {
                put(&[b"0123456789abcdef"[(number >> (4 * digit)) as usize & 15]]);
            }
            put(behind);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_with_and_without_memory() {
        for identity in [
            Identity { device: 0, inode: 0 },
            Identity { device: 0x801, inode: u64::MAX },
            Identity { device: 16, inode: 1 },
        ] {
            let name = identity.file_name();
            let c_name: Vec<u8> =
                identity.c_name().iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();

            assert_eq!(name.as_bytes(), c_name);
            assert_eq!(Some(identity), Identity::of_file_name(&name));
        }
        assert_eq!(None, Identity::of_file_name("file-0801-1.side"));
        assert_eq!(None, Identity::of_file_name("file-1.side"));
    }
}
