//! A common form for different paths to the same file.

use std::path::{Path, PathBuf};

/// The path without links and dots. If it does not exist, links are not resolved.
pub fn resolved(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    full.canonicalize().unwrap_or_else(|_| full.components().collect())
}
