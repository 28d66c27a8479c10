//! Merges the records of several files into one order, newest first.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::catalog::CatalogEntry;
use super::read_file::ReadFile;
use super::recent::RecentTraces;
use super::sources::FileSources;
use crate::cancel::QueryDeadline;
use crate::query::Query;
use crate::record::Record;
use crate::stores::{ANSWER_UNREAD, AnswerProgress, AnswerRow, QueryAnswer, RowFlow, StoreError};

/// Reads several files at the same time, in the order of their records.
#[derive(Debug)]
pub(super) struct FileMerge {
    folder: PathBuf,
    recent: RecentTraces,
    query: Query,
    until: QueryDeadline,
    /// Maximum number of records that are still to be returned.
    left: u64,
    open: Vec<FileSources>,
    /// The files that are not open yet, with the time of their newest record. The newest file is the last. A file is
    /// opened when all newer records have been returned. If the answer ends before, the file is never opened.
    waiting: Vec<(i64, CatalogEntry)>,
    /// Why the first file that cannot be used was left out. The answer ends with this error, after all records of the
    /// other files.
    left_out: Option<StoreError>,
}

impl QueryAnswer for FileMerge {
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        while self.left > 0 {
            let Some(record) = self.next()? else { break };
            if Instant::now() > self.until.deadline {
                return Err(StoreError::Retry(ANSWER_UNREAD.to_owned()));
            }
            self.left -= 1;
            match each(AnswerRow::Record(record)) {
                RowFlow::Continue => {}
                RowFlow::Stop => break,
                RowFlow::Pause => {
                    self.open.iter().for_each(FileSources::release_memory);
                    return Ok(AnswerProgress::Paused);
                }
            }
        }
        self.left = 0;
        self.left_out.take().map_or(Ok(AnswerProgress::Ended), Err)
    }
}

impl FileMerge {
    /// Creates the answer to a query from these files.
    pub fn new(
        folder: &Path,
        recent: &RecentTraces,
        files: Vec<CatalogEntry>,
        query: Query,
        until: QueryDeadline,
    ) -> Self {
        // For a file that is still being written, the newest time is not known.
        let newest = |entry: &CatalogEntry| entry.range.map_or(i64::MAX, |(_, newest)| newest);
        let mut waiting: Vec<_> = files.into_iter().map(|entry| (newest(&entry), entry)).collect();
        waiting.sort_by_key(|(newest, entry)| (*newest, entry.sequence));
        let left = query.limit.unwrap_or(u64::MAX);
        let (folder, recent) = (folder.to_owned(), recent.clone());
        Self { folder, recent, query, until, left, open: Vec::new(), waiting, left_out: None }
    }

    fn next(&mut self) -> Result<Option<Record<'static>>, StoreError> {
        loop {
            let mut newest: Option<((i64, i64), usize)> = None;
            let mut damaged = None;
            for (at, sources) in self.open.iter_mut().enumerate() {
                match sources.next_time() {
                    Ok(Some(time_ns)) => newest = newest.max(Some(((time_ns, sources.sequence()), at))),
                    Ok(None) => {}
                    Err(error) => damaged = Some((at, error)),
                }
            }
            if let Some((at, error)) = damaged {
                self.leave_out(error)?;
                self.open.remove(at);
                continue;
            }
            match (newest, self.waiting.last()) {
                (Some(((time_ns, _), at)), waiting) if waiting.is_none_or(|(newest, _)| *newest < time_ns) => {
                    return self.open[at].take();
                }
                (_, None) => return Ok(None),
                _ => self.open_next()?,
            }
        }
    }

    fn open_next(&mut self) -> Result<(), StoreError> {
        // Close the files that have no more records.
        let mut kept = Vec::new();
        for mut sources in std::mem::take(&mut self.open) {
            if sources.next_time()?.is_some() {
                kept.push(sources);
            }
        }
        self.open = kept;
        let Some((_, entry)) = self.waiting.pop() else { return Ok(()) };
        match ReadFile::open(&self.folder, &entry, &self.until) {
            Ok(Some(file)) => self.open.push(FileSources::of(file, &self.query, &self.recent)),
            Ok(None) => {}
            Err(error) => self.leave_out(error)?,
        }
        Ok(())
    }

    /// Continues without a file that cannot be used until a person repairs it.
    fn leave_out(&mut self, error: StoreError) -> Result<(), StoreError> {
        match error {
            StoreError::Fatal(_) => {
                self.left_out.get_or_insert(error);
                Ok(())
            }
            StoreError::Retry(_) => Err(error),
        }
    }
}
