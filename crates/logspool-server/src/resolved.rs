//! Brings different paths of the same file to a common form.

use std::path::{Path, PathBuf};

/// Returns the absolute path without symbolic links and dots. If the path does not exist, links are not resolved.
pub fn resolved(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    full.canonicalize().unwrap_or_else(|_| full.components().collect())
}
