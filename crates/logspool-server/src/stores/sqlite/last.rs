//! Finds the newest record of each value of a field.
//!
//! First the place of each record is found in all files, which takes little memory. Then the records are read one by
//! one, newest first. A record never changes, so both steps see the same records.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use rusqlite::{OptionalExtension, Row};

use super::catalog::CatalogEntry;
use super::counts::{CountQuery, add, beyond};
use super::database::COLUMNS;
use super::read_file::{ReadFile, record};
use crate::cancel::QueryDeadline;
use crate::query::Field;
use crate::query_memory::QueryMemory;
use crate::record::Record;
use crate::stores::{ANSWER_UNREAD, AnswerProgress, AnswerRow, QueryAnswer, RowFlow, StoreError};

/// The place of a record: its time, the number of its file, and its number in the file. The newest record has the
/// greatest place.
type Place = (i64, i64, i64);

/// Finds the newest matching record of each value of the field in `files`.
pub(super) fn find(
    query: &CountQuery<'_>,
    files: Vec<CatalogEntry>,
    field: &Field,
    limit: u64,
    mut memory: QueryMemory,
) -> Result<LastRecords, StoreError> {
    let mut newest: HashMap<Option<String>, Place> = HashMap::new();
    let left_out = query.each_file(&files, |file| {
        let parts = query.record_parts(file)?;
        let statements = parts.into_iter().map(|(part, since, until)| part.newest(query.query, field, since, until));
        let read = |row: &Row<'_>| Ok((row.get(1)?, file.sequence, row.get(2)?));
        let found = query.values(file, statements, &mut memory, newest.len(), read)?;
        for (value, place) in found {
            add(&mut newest, value, place, &mut memory, |newest, place| *newest = place.max(*newest));
        }
        Ok(())
    })?;
    let mut places: Vec<_> = newest.into_values().collect();
    places.sort_unstable();
    let cut = beyond(places.len(), limit);
    places.drain(..cut);
    let files = files.into_iter().map(|entry| (entry.sequence, entry)).collect();
    let (folder, until) = (query.folder.to_owned(), query.until.clone());
    Ok(LastRecords { folder, until, files, open: HashMap::new(), places, cut: cut as u64, left_out, _memory: memory })
}

/// An answer that reads the records one after the other.
#[derive(Debug)]
pub(super) struct LastRecords {
    folder: PathBuf,
    until: QueryDeadline,
    files: HashMap<i64, CatalogEntry>,
    /// The files that are open, by their numbers.
    open: HashMap<i64, ReadFile>,
    /// The places of the records that are not read yet. The newest record is the last.
    places: Vec<Place>,
    /// Number of records that the limit cut off.
    cut: u64,
    /// Why a file was left out. The answer ends with this error, after all records of the other files.
    left_out: Option<StoreError>,
    _memory: QueryMemory,
}

impl LastRecords {
    /// Reads a record. `None`: its file was removed since.
    fn read(&mut self, (_, sequence, id): Place) -> Result<Option<Record<'static>>, StoreError> {
        if !self.open.contains_key(&sequence) {
            let Some(entry) = self.files.get(&sequence) else { return Ok(None) };
            let Some(file) = ReadFile::open(&self.folder, entry, &self.until)? else { return Ok(None) };
            self.open.insert(sequence, file);
        }
        let Some(file) = self.open.get(&sequence) else { return Ok(None) };
        let sql = format!("SELECT {COLUMNS} FROM records WHERE id = ?");
        let find = || file.connection.prepare_cached(&sql)?.query_one([id], |row| record(row, 0)).optional();
        find().map_err(|error| file.failed(&error))
    }
}

impl QueryAnswer for LastRecords {
    fn resume(&mut self, each: &mut dyn FnMut(AnswerRow<'_>) -> RowFlow) -> Result<AnswerProgress, StoreError> {
        while let Some(place) = self.places.pop() {
            if Instant::now() > self.until.deadline {
                return Err(StoreError::Retry(ANSWER_UNREAD.to_owned()));
            }
            let record = match self.read(place) {
                Err(error @ StoreError::Fatal(_)) => {
                    self.left_out.get_or_insert(error);
                    continue;
                }
                record => record?,
            };
            match record.map_or(RowFlow::Continue, |record| each(AnswerRow::Record(record))) {
                RowFlow::Continue => {}
                RowFlow::Pause => return Ok(AnswerProgress::Paused),
                RowFlow::Stop => break,
            }
        }
        self.places.clear();
        self.left_out.take().map_or(Ok(AnswerProgress::Ended), Err)
    }

    fn left_out(&self) -> u64 {
        self.cut
    }
}
