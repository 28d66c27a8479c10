//! `/upload`: the journal of systemd, as `systemd-journal-upload` sends it.
//!
//! A request may contain the whole journal of a machine. So its entries are stored while it arrives, and the answer
//! comes after the last one is stored. After another answer the sender begins again after the last request that
//! succeeded, so entries may be stored twice, but no entry is lost.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::routing::post;
use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::door::{Door, text};
use super::receive::{DoorReader, store};
use crate::budget::Reservation;
use crate::connection::framing::FrameError;
use crate::decoders::inflate::Coding;
use crate::decoders::journal::{self, EntryScan};
use crate::decoders::stream_inflater::{INFLATER_BYTES, StreamInflater};
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::guard::{content_type, header_text};
use crate::http::ingest::{DecodePermit, wrong_type};
use crate::peer::Peer;

/// The declaration of the path for journals; see the module documentation.
pub(super) const JOURNAL: Door = Door { routes, failure: text };

/// The content type of the export format.
const EXPORT: &str = "application/vnd.fdo.journal";

/// Number of bytes of entries that are decoded and stored together.
///
/// Chosen: some 300 entries. A longer part would need a reservation of memory while it arrives.
const PART_BYTES: usize = 256 * 1024;

fn routes(router: Router<Context>) -> Router<Context> {
    router.route("/upload", post(upload))
}

async fn upload(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1], &'static str), HttpError> {
    let kind = content_type(&headers);
    if !kind.eq_ignore_ascii_case(EXPORT) {
        return Err(wrong_type(kind, EXPORT));
    }
    let name = header_text(&headers, &header::CONTENT_ENCODING).unwrap_or("identity").trim();
    let mut inflater = match Coding::of(name) {
        _ if name.eq_ignore_ascii_case("identity") => None,
        Some(coding) => Some(StreamInflater::new(coding).map_err(|error| malformed(&error))?),
        None => {
            let why = format!("the content encoding {name:?} is not accepted here: set Compression=zstd");
            return Err(HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
    };
    let reader = DoorReader::new(peer.clone(), PART_BYTES, &context);
    // One entry may be as long as a frame.
    let needed = context.limits.frame_bytes + PART_BYTES;
    let mut upload = Upload { context: &context, peer, reader, bytes: BytesMut::new(), room: None, needed };
    if inflater.is_some() {
        upload.needed += INFLATER_BYTES;
        upload.reserve().await;
    }
    let mut pieces = body.into_data_stream();
    while let Some(piece) = timeout(context.limits.frame_time(), pieces.next()).await.map_err(|_| late(&context))? {
        let why = |error| HttpError(StatusCode::BAD_REQUEST, format!("the body is incomplete: {error}"));
        let piece = piece.map_err(why)?;
        let Some(inflater) = &mut inflater else {
            upload.bytes.extend_from_slice(&piece);
            upload.store_full_part().await?;
            continue;
        };
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let used = inflater.push(rest, &mut upload.bytes).map_err(|error| malformed(&error))?;
            rest = &rest[used..];
            upload.store_full_part().await?;
        }
    }
    if let Some(inflater) = &mut inflater {
        inflater.end(&mut upload.bytes).map_err(|error| malformed(&error))?;
    }
    upload.end().await?;
    // The sender compresses further journals if it is told that it may.
    Ok((StatusCode::ACCEPTED, [(header::ACCEPT_ENCODING, "zstd")], "OK.\n"))
}

/// A journal that arrives.
struct Upload<'a> {
    context: &'a Context,
    peer: Peer,
    reader: DoorReader<'a>,
    /// Received bytes of which no entry is stored.
    bytes: BytesMut,
    room: Option<Reservation>,
    /// Size of the room.
    needed: usize,
}

impl Upload<'_> {
    async fn reserve(&mut self) {
        if self.room.is_none() {
            self.room = Some(self.context.intake.budget.for_body(self.peer.origin(), self.needed).await);
        }
    }

    /// Stores the entries if there are enough of them.
    async fn store_full_part(&mut self) -> Result<(), HttpError> {
        if self.bytes.len() < PART_BYTES {
            return Ok(());
        }
        self.store_entries().await?;
        let limit = self.context.limits.frame_bytes;
        match self.bytes.len() > limit {
            true => Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, FrameError::TooLong(limit).to_string())),
            false => Ok(()),
        }
    }

    /// Stores the last entries.
    async fn end(&mut self) -> Result<(), HttpError> {
        if !self.bytes.is_empty() && !self.bytes.ends_with(b"\n\n") {
            // The last entry may end with the body.
            self.bytes.extend_from_slice(b"\n");
        }
        self.store_entries().await?;
        if self.bytes.iter().any(|byte| *byte != b'\n') {
            return Err(HttpError(StatusCode::BAD_REQUEST, "the last entry is incomplete".to_owned()));
        }
        // Parts of a line that has not ended.
        let turn = DecodePermit::wait(self.peer.origin(), self.context).await?;
        store(self.context, self.reader.take_all()?, turn).await
    }

    /// Stores the complete entries, and removes their bytes.
    async fn store_entries(&mut self) -> Result<(), HttpError> {
        self.reserve().await;
        let turn = DecodePermit::wait(self.peer.origin(), self.context).await?;
        let Self { context, reader, bytes, .. } = self;
        let (taken, batch) = tokio::task::block_in_place(|| {
            reader.set_body_bytes(bytes.len());
            Ok::<_, HttpError>((read_entries(bytes, reader)?, reader.take_open(context)?))
        })?;
        store(context, batch, turn).await?;
        bytes.advance(taken);
        Ok(())
    }
}

/// Reads the complete entries, and returns their size in bytes.
fn read_entries(bytes: &[u8], reader: &mut DoorReader<'_>) -> Result<usize, HttpError> {
    let mut at = 0;
    loop {
        // An empty line between entries is no entry.
        if bytes.get(at) == Some(&b'\n') {
            at += 1;
            continue;
        }
        let entry = match journal::scan(&bytes[at..]) {
            EntryScan::Complete(length) => &bytes[at..at + length],
            EntryScan::Incomplete => return Ok(at),
            EntryScan::Malformed => {
                let why = "the body is not in the export format of the journal".to_owned();
                return Err(HttpError(StatusCode::BAD_REQUEST, why));
            }
        };
        match journal::read(entry) {
            Ok(Some(record)) => reader.push(&record),
            Ok(None) => {}
            Err(why) => reader.reject(entry, &why),
        }
        at += entry.len();
    }
}

fn malformed(error: &io::Error) -> HttpError {
    HttpError(StatusCode::BAD_REQUEST, format!("cannot decompress the journal: {error}"))
}

fn late(context: &Context) -> HttpError {
    let seconds = context.limits.frame_seconds;
    HttpError(StatusCode::REQUEST_TIMEOUT, format!("nothing arrived for {seconds} seconds (limits.frame_seconds)"))
}
