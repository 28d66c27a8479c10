//! A text file with a line for each record: for people, `grep` and `tail -f`.
//!
//! There are no transactions: a line may be there twice after a crash, or after an error of the disk. Where the disk is
//! full, a group goes on where it was cut, in a new file if the old one was removed to make room. A file that others move
//! away (logrotate) is opened anew, as by the core's watched file sink.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use logspool::sink::{Lines, Sink, SinkError};
use logspool::sinks::{SinkOptions, WatchedFileOptions};
use logspool_record::definition::Descriptor;

use super::private::{self, Readers};
use super::{Found, Store, StoreError, Written};
use crate::delivery::{Delivery, Outcome};
use crate::show::{Colour, Format, Look, Output};

/// See the file head.
pub struct FileStore {
    path: String,
    readers: Readers,
    sink: Box<dyn Sink>,
    /// The batches that are being written, their text, and how much of it the file has.
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
    /// Opens the file, at its end. Others than the readers get no right to open it; those that they have on a file that
    /// is there are taken away.
    ///
    /// # Errors
    ///
    /// What open(2) says; the file belongs to another user.
    pub fn open(path: &Path, readers: Readers) -> Result<Self, StoreError> {
        let why = |why: String| StoreError::Fatal(format!("cannot open {}: {why}", path.display()));
        let text = path.to_str().ok_or_else(|| why("the path is no UTF-8".to_owned()))?.to_owned();
        private::make_file(path, readers)?;
        close_to_others(path, readers)?;
        let definition = WatchedFileOptions { path: text.clone() }.define(Descriptor::Open);
        let sink = logspool::sinks::open(&definition).map_err(|error| why(error.to_string()))?;
        Ok(Self::of(text, readers, sink))
    }

    fn of(path: String, readers: Readers, mut sink: Box<dyn Sink>) -> Self {
        sink.keep_unsynced();
        Self { path, readers, sink, group: Vec::new(), text: Vec::new(), written: 0 }
    }

    /// Whether these are the batches that an error has interrupted.
    fn goes_on_with(&self, deliveries: &[Arc<Delivery>]) -> bool {
        let mut pairs = self.group.iter().zip(deliveries);
        self.group.len() == deliveries.len() && pairs.all(|(begun, given)| Arc::ptr_eq(begun, given))
    }

    fn begin(&mut self, deliveries: &[Arc<Delivery>]) -> io::Result<()> {
        self.group.clear();
        self.written = 0;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let mut output = Output::new(text, Format::Text, None, Look { colour: Colour::Off, columns: 0 });
        for row in deliveries.iter().flat_map(|delivery| delivery.batch.rows()) {
            output.row(&Found::Record(row.record()))?;
        }
        self.text = output.finish()?;
        self.group = deliveries.to_vec();
        Ok(())
    }

    fn go_on(&mut self) -> io::Result<()> {
        while self.written < self.text.len() {
            let lines = Lines { bytes: &self.text[self.written..], marks: &[], before: self.written };
            self.written += self.sink.write(lines).map_err(SinkError::into_io_error)?;
        }
        // Nobody knows what of it is on the disk then: all of it is written again.
        self.sink.sync().inspect_err(|_| self.written = 0)?;
        Ok(())
    }
}

/// Takes the rights that others have on a file, wherever a link leads. Pipes and devices keep theirs.
fn close_to_others(path: &Path, readers: Readers) -> Result<(), StoreError> {
    let target = fs::canonicalize(path).map_err(|error| {
        StoreError::Fatal(format!("cannot open {}: {error}; is it a link to a file that is gone?", path.display()))
    })?;
    if !target.is_file() {
        return Ok(());
    }
    if let Some(mode) = private::repair_file(&target, readers)? {
        tracing::warn!(
            "other users could open {} (mode {mode:04o}); this is repaired, but stays open to those who have it open; \
             store_group lets the members of a group read it",
            target.display()
        );
    }
    Ok(())
}

impl Store for FileStore {
    fn name(&self) -> &str {
        "file"
    }

    fn write(&mut self, deliveries: &[Arc<Delivery>]) -> Result<Written, StoreError> {
        // The sink makes a file that was moved away anew, with the usual rights: so it has to be there before.
        private::make_file(Path::new(&self.path), self.readers)?;
        let begun = if self.goes_on_with(deliveries) { Ok(()) } else { self.begin(deliveries) };
        begun
            .and_then(|()| self.go_on())
            .map_err(|error| StoreError::Retry(format!("cannot append to {}: {error}", self.path)))?;
        self.group.clear();
        let stored = deliveries.iter().map(|delivery| delivery.batch.len() as u64).sum();
        Ok(Written { outcomes: vec![Outcome::Committed; deliveries.len()], stored, ..Written::default() })
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
    fn what_was_written_is_synced_before_it_counts_and_written_again_if_that_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log").display().to_string();
        let disk = Arc::new(Mutex::new(Disk::default()));
        let mut store = FileStore::of(path.clone(), Readers::Owner, Box::new(OnDisk(disk.clone())));
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
