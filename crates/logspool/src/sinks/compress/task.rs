//! The description of a compression: the backups of one log file.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sinks::rotation::Compression;

use super::super::calendar::Precision;
use crate::sink::Origin;

/// Naming scheme of the backups of a file.
#[derive(Debug, Clone, Copy)]
pub enum Naming {
    /// `path.1`, `path.2`, ...; the backup with the highest number is the oldest.
    Numbers,
    /// `path.2026-11-22`, with a time of this precision.
    Stamps(Precision),
}

/// The compression of the backups of one log file.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) path: String,
    pub(super) how: Compression,
    pub(super) naming: Naming,
    pub(super) origin: Option<Origin>,
    pub(super) alone: Arc<Mutex<()>>,
    pub(super) trouble: Arc<Mutex<Option<io::Error>>>,
}

impl Task {
    pub(super) fn note(&self, error: io::Error) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}
