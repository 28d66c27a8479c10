//! A text file with one line per record, for people, `grep` and `tail -f`.
//!
//! There are no transactions: a line may be in the file twice after a crash or a disk error. If a full disk interrupts
//! a group of batches, the group later continues at the byte where it was interrupted. If the file was removed to make
//! room, the group continues in a new file. If another program (logrotate) moves the file away, this store opens a new
//! file, as the core's watched file sink does.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use logspool::sink::{Lines, Sink, SinkError};
use logspool::sinks::{SinkOptions, WatchedFileOptions};
use logspool_record::definition::Descriptor;

use super::private::{self, Readers};
use super::{AnswerRow, Store, StoreError, WriteResult};
use crate::delivery::{Delivery, Outcome};
use crate::show::{Colour, Format, Output, TextStyle};

/// The file store; see the module documentation.
pub struct FileStore {
    path: String,
    readers: Readers,
    sink: Box<dyn Sink>,
    /// The batches that are being written. `text` is their text, and `written` is how many of its bytes are in the
    /// file.
    group: Vec<Arc<Delivery>>,
    text: Vec<u8>,
    written: usize,
}

impl std::fmt::Debug for FileStore {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "FileStore({:?})", self.path)
    }
}

impl FileStore {
    /// Opens the file for appending. Only `readers` get access. If other users have access to an existing file, that
    /// access is removed.
    ///
    /// # Errors
    ///
    /// open(2) fails, or the file belongs to another user.
    pub fn open(path: &Path, readers: Readers) -> Result<Self, StoreError> {
        let why = |why: String| StoreError::Fatal(format!("cannot open {}: {why}", path.display()));
        let text = path.to_str().ok_or_else(|| why("the path is not UTF-8".to_owned()))?.to_owned();
        private::make_file(path, readers)?;
        restrict_access(path, readers)?;
        let definition = WatchedFileOptions { path: text.clone() }.define(Descriptor::Open);
        let sink = logspool::sinks::open(&definition).map_err(|error| why(error.to_string()))?;
        Ok(Self::with_sink(text, readers, sink))
    }

    fn with_sink(path: String, readers: Readers, mut sink: Box<dyn Sink>) -> Self {
        sink.keep_unsynced();
        Self { path, readers, sink, group: Vec::new(), text: Vec::new(), written: 0 }
    }

    /// True if `deliveries` are the batches of the last write, which an error interrupted.
    fn continues(&self, deliveries: &[Arc<Delivery>]) -> bool {
        let mut pairs = self.group.iter().zip(deliveries);
        self.group.len() == deliveries.len() && pairs.all(|(begun, given)| Arc::ptr_eq(begun, given))
    }

    fn begin(&mut self, deliveries: &[Arc<Delivery>]) -> io::Result<()> {
        self.group.clear();
        self.written = 0;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let mut output = Output::new(text, Format::Text, None, TextStyle { colour: Colour::Off, columns: 0 });
        for row in deliveries.iter().flat_map(|delivery| delivery.batch.rows()) {
            output.row(&AnswerRow::Record(row.record()))?;
        }
        self.text = output.finish()?;
        self.group = deliveries.to_vec();
        Ok(())
    }

    fn write_rest(&mut self) -> io::Result<()> {
        while self.written < self.text.len() {
            let lines = Lines { bytes: &self.text[self.written..], marks: &[], before: self.written };
            self.written += self.sink.write(lines).map_err(SinkError::into_io_error)?;
        }
        // After a failed sync it is unknown which bytes are on the disk, so the whole group is written again.
        self.sink.sync().inspect_err(|_| self.written = 0)?;
        Ok(())
    }
}

/// Removes other users' access to a file. Symbolic links are followed. The permissions of pipes and devices stay
/// unchanged.
fn restrict_access(path: &Path, readers: Readers) -> Result<(), StoreError> {
    let target = fs::canonicalize(path).map_err(|error| {
        StoreError::Fatal(format!("cannot open {}: {error}; is it a link to a missing file?", path.display()))
    })?;
    if !target.is_file() {
        return Ok(());
    }
    if let Some(mode) = private::repair_file(&target, readers)? {
        tracing::warn!(
            "other users could open {} (mode {mode:04o}); this is repaired, but users who have it open keep access; \
             set store_group to let the members of a group read it",
            target.display()
        );
    }
    Ok(())
}

impl Store for FileStore {
    fn name(&self) -> &str {
        "file"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<WriteResult, StoreError> {
        // If the file was moved away, the sink would create a new one with the default permissions. So create it here
        // first, with the right permissions.
        private::make_file(Path::new(&self.path), self.readers)?;
        let begun = if self.continues(deliveries) { Ok(()) } else { self.begin(deliveries) };
        begun
            .and_then(|()| self.write_rest())
            .map_err(|error| StoreError::Retry(format!("cannot append to {}: {error}", self.path)))?;
        self.group.clear();
        let stored = deliveries.iter().map(|delivery| delivery.batch.len() as u64).sum();
        Ok(WriteResult { outcomes: vec![Outcome::Committed; deliveries.len()], stored, ..WriteResult::default() })
    }

    fn maintain(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use logspool::sink::SyncError;

    use super::*;
    use crate::batch::{Arrival, Batch};
    use crate::record::Record;

    /// A file on a disk whose first sync fails.
    #[derive(Default)]
    struct Disk {
        text: String,
        synced: Vec<String>,
    }

    struct OnDisk(Arc<Mutex<Disk>>);

    fn failed() -> SyncError {
        SyncError { error: io::Error::other("of the disk"), is_final: true }
    }

    impl Sink for OnDisk {
        fn write(&mut self, lines: Lines<'_>) -> Result<usize, SinkError> {
            self.0.lock().unwrap().text.push_str(str::from_utf8(lines.bytes).unwrap());
            Ok(lines.bytes.len())
        }

        fn sync(&mut self) -> Result<(), SyncError> {
            let mut disk = self.0.lock().unwrap();
            let text = disk.text.clone();
            disk.synced.push(text);
            if disk.synced.len() == 1 { Err(failed()) } else { Ok(()) }
        }
    }

    #[test]
    fn a_group_is_synced_before_it_counts_and_rewritten_after_a_failed_sync() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log").display().to_string();
        let disk = Arc::new(Mutex::new(Disk::default()));
        let mut store = FileStore::with_sink(path.clone(), Readers::Owner, Box::new(OnDisk(disk.clone())));
        let mut batch = Batch::default();
        batch.push(&Record { message: "x".into(), level: 20, ..Record::default() }, Arrival { time_ns: 5, host: "" });
        let group = [Delivery::new(batch, None, 1, None).0];

        let error = store.write(&group).unwrap_err().to_string();
        assert_eq!(format!("cannot append to {path}: of the disk"), error);
        assert_eq!(1, store.write(&group).unwrap().stored);

        let line = "1970-01-01T00:00:00.000Z INFO      x\n";
        assert_eq!(vec![line.to_owned(), line.repeat(2)], disk.lock().unwrap().synced);
    }
}
