//! The steps of all doors with a body: decompress it within the limits, decode it, and answer when its records are stored.

use axum::http::{HeaderMap, StatusCode};

use crate::batch::Batch;
use crate::connection::frame_reader::FrameReader;
use crate::decoders::density::{MIN_RECORD_BYTES, is_too_dense};
use crate::http::body::RequestBody;
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::ingest::{self, DecodePermit};
use crate::http::protocol::HTTP;
use crate::peer::Peer;
use crate::record::Record;

/// Maximum memory for the records of a request.
///
/// Chosen: four times the longest body at the default limits, as for OTLP. Labels that many records share take memory
/// once for each record.
const MAX_BATCH_BYTES: usize = 64 << 20;

/// Receives the records of a body, within limits.
pub(super) struct DoorReader<'a> {
    frames: FrameReader<'a>,
    body_bytes: usize,
    max_records: usize,
    problem: Option<HttpError>,
}

impl<'a> DoorReader<'a> {
    /// Creates a reader for a body of this size.
    pub fn new(peer: Peer, body_bytes: usize, context: &'a Context) -> Self {
        let frames = FrameReader::new(&HTTP, peer, &context.intake.metrics);
        Self { frames, body_bytes, max_records: context.limits.body_records(), problem: None }
    }

    /// Sets the size of the next part of the body.
    pub fn set_body_bytes(&mut self, bytes: usize) {
        self.body_bytes = bytes;
    }

    /// Adds a record.
    pub fn push(&mut self, record: &Record<'_>) {
        if self.has_room() {
            self.frames.count_frame();
            self.frames.push(record);
        }
    }

    /// Adds a record about bytes that cannot be read.
    pub fn reject(&mut self, bytes: &[u8], why: &str) {
        if self.has_room() {
            self.frames.count_frame();
            self.frames.reject(bytes, why);
        }
    }

    /// Adds a record, or a record about unreadable bytes.
    pub fn add(&mut self, bytes: &[u8], read: Result<Record<'_>, impl ToString>) {
        match read {
            Ok(record) => self.push(&record),
            Err(error) => self.reject(bytes, &error.to_string()),
        }
    }

    fn has_room(&mut self) -> bool {
        let records = self.frames.values();
        let why = if records >= self.max_records {
            format!("the body contains more than {} records: send fewer at once", self.max_records)
        } else if is_too_dense(records, self.body_bytes) {
            format!("the body contains more than one record per {MIN_RECORD_BYTES} bytes")
        } else if self.frames.used_bytes() > MAX_BATCH_BYTES {
            format!("the records of the body take more than {MAX_BATCH_BYTES} bytes: send fewer at once")
        } else {
            return self.problem.is_none();
        };
        self.problem.get_or_insert(HttpError(StatusCode::PAYLOAD_TOO_LARGE, why));
        false
    }

    /// Number of records and unreadable parts up to now.
    pub fn records(&self) -> usize {
        self.frames.values()
    }

    /// Returns the records, also about unreadable bytes.
    ///
    /// # Errors
    ///
    /// There are too many records.
    pub fn take_all(&mut self) -> Result<Batch, HttpError> {
        let batch = self.frames.take();
        self.problem.take().map_or(Ok(batch), Err)
    }

    /// As [`Self::take_all`], but keeps lines whose last parts are missing. The request must not be acknowledged before
    /// they are taken, too.
    pub fn take_open(&mut self, context: &Context) -> Result<Batch, HttpError> {
        let batch = self.frames.take_open(&context.intake.budget);
        self.problem.take().map_or(Ok(batch), Err)
    }

    /// Returns the records.
    ///
    /// # Errors
    ///
    /// There are too many records, or none of them can be read: nothing is stored then, and the sender gets the reason.
    pub fn take(&mut self) -> Result<Batch, HttpError> {
        let (_, undecoded) = self.frames.rejected();
        let batch = self.take_all()?;
        match batch.row(0) {
            Some(row) if batch.len() == undecoded => Err(HttpError(StatusCode::BAD_REQUEST, row.message.to_owned())),
            _ => Ok(batch),
        }
    }
}

/// Decodes a body with `read`, and returns its result after the records are stored. If some parts of the body cannot
/// be read, they are kept as records of the logger `logspool.undecoded`. If no record can be read, nothing is stored.
pub(super) async fn receive<T>(
    context: &Context,
    peer: Peer,
    headers: &HeaderMap,
    sent: RequestBody,
    read: impl FnOnce(&[u8], &mut DoorReader<'_>) -> Result<T, HttpError>,
) -> Result<T, HttpError> {
    let turn = DecodePermit::wait(peer.origin(), context).await?;
    let (batch, result) = ingest::decode(&sent, || {
        let body = sent.inflated(headers, &context.limits)?;
        let mut reader = DoorReader::new(peer, body.len(), context);
        let result = read(&body, &mut reader)?;
        Ok((reader.take()?, result))
    })?;
    drop(sent);
    store(context, batch, turn).await?;
    Ok(result)
}

/// Hands the records to the stores, and waits until they are stored. If a store is known to fail, refuses the records
/// at once, so that the sender keeps them.
pub(super) async fn store(context: &Context, batch: Batch, turn: DecodePermit) -> Result<(), HttpError> {
    ingest::refuse_if_failing(&batch, context)?;
    ingest::commit(batch, turn, context).await
}
