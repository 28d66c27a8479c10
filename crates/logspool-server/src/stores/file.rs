//! A text file with a line for each record: for people, `grep` and `tail -f`.
//!
//! There are no transactions: a group that was written in part is written again, so a line may be there twice after an
//! error or a crash. A file that others move away (logrotate) is opened anew, as by the core's watched file sink.

use std::path::Path;
use std::sync::Arc;

use logspool::definition::{Descriptor, SinkDefinition, SinkKind};
use logspool::sink::{Lines, Sink};

use super::{Found, Store, StoreError, Written};
use crate::delivery::{Delivery, Outcome};
use crate::show::{Colour, Format, Look, Output};

/// See the file head.
pub struct FileStore {
    path: String,
    sink: Box<dyn Sink>,
    text: Vec<u8>,
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "FileStore({:?})", self.path)
    }
}

impl FileStore {
    /// Opens the file, at its end.
    ///
    /// # Errors
    ///
    /// What open(2) says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let why = |why: String| StoreError::Fatal(format!("cannot open {}: {why}", path.display()));
        let text = path.to_str().ok_or_else(|| why("the path is no UTF-8".to_owned()))?.to_owned();
        let kind = SinkKind::WatchedFile { path: text.clone() };
        let definition = SinkDefinition { kind, descriptor: Descriptor::Open };
        let sink = logspool::sinks::open(&definition).map_err(|error| why(error.to_string()))?;
        Ok(Self { path: text, sink, text: Vec::new() })
    }
}

impl Store for FileStore {
    fn name(&self) -> &str {
        "file"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<Written, StoreError> {
        self.text.clear();
        let text = std::mem::take(&mut self.text);
        let mut output = Output::new(text, Format::Text, None, Look { colour: Colour::Off, columns: 0 });
        let mut stored = 0;
        let retry = |error: std::io::Error| StoreError::Retry(error.to_string());
        for row in deliveries.iter().flat_map(|delivery| delivery.batch.rows()) {
            output.row(&Found::Record(row.record())).map_err(retry)?;
            stored += 1;
        }
        self.text = output.finish().map_err(retry)?;
        let mut before = 0;
        while before < self.text.len() {
            let lines = Lines { bytes: &self.text[before..], marks: &[], before };
            let taken = self
                .sink
                .write(lines)
                .map_err(|error| StoreError::Retry(format!("cannot append to {}: {}", self.path, error.io_error())))?;
            before += taken;
        }
        Ok(Written { outcomes: vec![Outcome::Committed; deliveries.len()], stored, ..Written::default() })
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}
