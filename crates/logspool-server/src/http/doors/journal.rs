//! `/upload`: the journal of systemd, as `systemd-journal-upload` sends it.
//!
//! A request may contain the whole journal of a machine. So its entries are stored while it arrives, and the answer
//! comes after the last one is stored. After another answer the sender begins again after the last request that
//! succeeded, so entries may be stored twice, but no entry is lost.

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::door::{Door, text};
use super::receive::{DoorReader, store};
use crate::connection::framing::FrameError;
use crate::decoders::journal::{self, EntryScan};
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
) -> Result<(StatusCode, &'static str), HttpError> {
    let kind = content_type(&headers);
    if !kind.eq_ignore_ascii_case(EXPORT) {
        return Err(wrong_type(kind, EXPORT));
    }
    let coding = header_text(&headers, &header::CONTENT_ENCODING).unwrap_or("identity");
    if !coding.eq_ignore_ascii_case("identity") {
        let why = format!("the content encoding {coding:?} is not accepted here: send the journal without one");
        return Err(HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let mut room = None;
    let mut bytes = BytesMut::new();
    let mut pieces = body.into_data_stream();
    loop {
        let piece = timeout(context.limits.frame_time(), pieces.next()).await.map_err(|_| late(&context))?;
        let is_end = piece.is_none();
        if let Some(piece) = piece {
            let why = |error| HttpError(StatusCode::BAD_REQUEST, format!("the body is incomplete: {error}"));
            bytes.extend_from_slice(&piece.map_err(why)?);
        }
        if bytes.len() < PART_BYTES && !is_end {
            continue;
        }
        if room.is_none() {
            // One entry may be as long as a frame.
            let bytes = context.limits.frame_bytes + PART_BYTES;
            room = Some(context.intake.budget.for_body(peer.origin(), bytes).await);
        }
        if is_end && !bytes.is_empty() && !bytes.ends_with(b"\n\n") {
            // The last entry may end with the body.
            bytes.extend_from_slice(b"\n");
        }
        let taken = store_entries(&bytes, &peer, &context).await?;
        bytes.advance(taken);
        if is_end && bytes.iter().all(|byte| *byte == b'\n') {
            return Ok((StatusCode::ACCEPTED, "OK.\n"));
        }
        if is_end {
            return Err(HttpError(StatusCode::BAD_REQUEST, "the last entry is incomplete".to_owned()));
        }
        if bytes.len() > context.limits.frame_bytes {
            let why = FrameError::TooLong(context.limits.frame_bytes).to_string();
            return Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
    }
}

/// Stores the complete entries, and returns their size in bytes.
async fn store_entries(bytes: &[u8], peer: &Peer, context: &Context) -> Result<usize, HttpError> {
    let turn = DecodePermit::wait(peer.origin(), context).await?;
    let (taken, batch) = tokio::task::block_in_place(|| {
        let mut reader = DoorReader::new(peer.clone(), bytes.len(), context);
        let mut at = 0;
        loop {
            // An empty line between entries is no entry.
            if bytes.get(at) == Some(&b'\n') {
                at += 1;
                continue;
            }
            let entry = match journal::scan(&bytes[at..]) {
                EntryScan::Complete(length) => &bytes[at..at + length],
                EntryScan::Incomplete => break,
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
        Ok((at, reader.take_all()?))
    })?;
    store(context, batch, turn).await?;
    Ok(taken)
}

fn late(context: &Context) -> HttpError {
    let seconds = context.limits.frame_seconds;
    HttpError(StatusCode::REQUEST_TIMEOUT, format!("nothing arrived for {seconds} seconds (limits.frame_seconds)"))
}
