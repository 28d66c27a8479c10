//! The body of a request. It must arrive within `limits.frame_seconds`. A long body needs a reservation in the memory
//! budget of all bodies.

use std::borrow::Cow;

use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRequest, MatchedPath, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::context::Context;
use super::error::HttpError;
use super::guard::header_text;
use crate::budget::Reservation;
use crate::decoders::inflate::{Coding, InflateError};
use crate::limits::Limits;
use crate::peer::Peer;

/// Number of bytes that a request may hold without a reservation in the budget. Chosen: the same number as for a
/// connection with frames.
const FREE_BYTES: usize = 64 * 1024;

/// Maximum length of a body that is read and dropped, as a multiple of the longest body. Chosen: the largest batches of
/// collectors are shorter. The answer to a longer one may get lost.
const DROPPED_BODIES: usize = 8;

/// Maximum time that a request waits for memory for its records. A long body has waited up to the same time before.
///
/// Chosen: half the time that OTLP exporters wait for an answer. An exporter that gets no answer in its time would send
/// the same body again while the first one waits.
pub(super) const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// A request body as the client sent it, maybe compressed.
#[derive(Debug)]
pub(super) struct RequestBody {
    bytes: BytesMut,
    room: Option<Reservation>,
}

impl FromRequest<Context> for RequestBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, context: &Context) -> Result<Self, HttpError> {
        let Context { intake, limits, .. } = context;
        let mut until = Instant::now() + limits.frame_time();
        // For other paths, wait without a limit: `HTTPHandler` ignores the answer, so a refused record would be lost.
        let hears_answers = request.extensions().get::<MatchedPath>().is_some();
        let origin = request.extensions().get::<Peer>().expect("every request has its peer").origin();
        let body = request.into_body();
        let most = limits.body_bytes();
        let announced = body.size_hint().upper().map_or(most, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut pieces = body.into_data_stream();
        let mut sent = Self { bytes: BytesMut::new(), room: None };
        let mut length = 0;
        while let Some(piece) = timeout_at(until, pieces.next()).await.map_err(|_| late(limits))? {
            let piece = piece
                .map_err(|error| HttpError(StatusCode::BAD_REQUEST, format!("the body is incomplete: {error}")))?;
            length += piece.len();
            if length > most.max(announced.min(most.saturating_mul(DROPPED_BODIES))) {
                return Err(too_large(limits));
            }
            if announced > most {
                // Read and drop the rest of the body: many senders read no answer before they have sent everything.
                continue;
            }
            if length > FREE_BYTES && sent.room.is_none() {
                let (asked, room) = (Instant::now(), intake.budget.for_body(origin, announced));
                sent.room = Some(match hears_answers {
                    true => timeout(ROOM_TIMEOUT, room).await.map_err(|_| no_room())?,
                    false => room.await,
                });
                // Extend the time limit: the service did not read while it waited for the reservation.
                until += asked.elapsed();
            }
            sent.bytes.extend_from_slice(&piece);
        }
        if length > most {
            return Err(too_large(limits));
        }
        Ok(sent)
    }
}

impl RequestBody {
    /// The bytes as the client sent them.
    pub fn plain(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes as the client sent them, and the reservation of their memory.
    pub fn into_bytes(self) -> (Bytes, Option<Reservation>) {
        (self.bytes.freeze(), self.room)
    }

    /// Returns the bytes after decompression.
    pub fn inflated(&self, headers: &HeaderMap, limits: &Limits) -> Result<Cow<'_, [u8]>, HttpError> {
        let name = header_text(headers, &header::CONTENT_ENCODING).unwrap_or_default().trim();
        if name.is_empty() || name.eq_ignore_ascii_case("identity") {
            return Ok(Cow::Borrowed(&self.bytes));
        }
        let Some(coding) = Coding::of(name) else {
            let why = format!("unknown content encoding {name:?}: use {}", Coding::NAMES);
            return Err(HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        };
        let mut inflated = Vec::new();
        match coding.inflate(&self.bytes, limits.body_bytes(), &mut inflated) {
            Ok(()) => Ok(Cow::Owned(inflated)),
            Err(InflateError::TooLarge(_)) => Err(too_large(limits)),
            Err(error) => Err(HttpError(StatusCode::BAD_REQUEST, error.to_string())),
        }
    }
}

pub(super) fn too_large(limits: &Limits) -> HttpError {
    let why = format!("the body is longer than {} bytes (16 times limits.frame_bytes)", limits.body_bytes());
    HttpError(StatusCode::PAYLOAD_TOO_LARGE, why)
}

fn late(limits: &Limits) -> HttpError {
    let why = format!("the body did not arrive within {} seconds (limits.frame_seconds)", limits.frame_seconds);
    HttpError(StatusCode::REQUEST_TIMEOUT, why)
}

fn no_room() -> HttpError {
    let why = "no memory for such a long body now: too many others arrive at the same time".to_owned();
    HttpError(StatusCode::TOO_MANY_REQUESTS, why)
}
