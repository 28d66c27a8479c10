//! Receives records by HTTP: JSON, JSON lines, and the forms of `logging.handlers.HTTPHandler`. OTLP is in `otlp.rs`.
//!
//! The answer is sent after every store has committed the records.

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::body::{ROOM_TIMEOUT, RequestBody};
use super::context::Context;
use super::error::HttpError;
use super::guard::header_text;
use crate::batch::Batch;
use crate::budget::Reservation;
use crate::config::Limits;
use crate::decoders::density::{MIN_RECORD_BYTES, is_too_dense};
use crate::decoders::{form, json_list};
use crate::delivery::Outcome;
use crate::origin::Origin;
use crate::peer::Peer;
use crate::protocols::http::HTTP;
use crate::protocols::json::{FRAME_FORMAT, JSON};
use crate::sources::frame_reader::FrameReader;
use crate::sources::framing::{FrameError, FrameScan, InputEnd};

/// A body with fewer bytes is decoded within one or two milliseconds, even if it is compressed.
const QUICK_BYTES: usize = 1024;

/// Permission to decode a body. A few kilobytes may become many megabytes of records, so the number of permits is
/// limited. A request keeps its permit while its records wait for a reservation.
#[derive(Debug)]
pub(super) struct DecodePermit {
    until: Instant,
    room: Reservation,
}

impl DecodePermit {
    /// Waits for a permit. The task does not wait again before [`commit`], so a permit is held only for a short time.
    pub async fn wait(origin: Origin, context: &Context) -> Result<Self, HttpError> {
        let until = Instant::now() + ROOM_TIMEOUT;
        let right = context.intake.budget.for_decoded_body(origin, context.limits.body_bytes());
        Ok(Self { until, room: timeout_at(until, right).await.map_err(|_| overloaded())? })
    }
}

/// `POST` to [`super::paths::OBJECTS`]: JSON objects, one after the other or in a list.
///
/// If some objects cannot be read, each of them becomes a record of the logger `logspool.undecoded`, as on a
/// connection. If no object can be read, nothing is stored.
pub(super) async fn objects(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    match content_type(&headers) {
        "application/json" | "application/x-ndjson" | "application/jsonl" => {}
        other => return Err(wrong_type(other, "application/json or application/x-ndjson")),
    }
    let sent = sent?;
    let turn = DecodePermit::wait(peer.origin(), &context).await?;
    let (batch, rejected, undecoded) =
        decode(&sent, || read(&sent.inflated(&headers, &context.limits)?, peer, &context))?;
    drop(sent);
    let records = batch.len() - undecoded;
    commit(batch, turn, &context).await?;
    let mut answer = serde_json::json!({ "records": records });
    if rejected > 0 {
        answer["rejected"] = rejected.into();
    }
    Ok(axum::Json(answer).into_response())
}

/// Decodes a body. While this thread decodes a long body, its other tasks run on another thread.
pub(super) fn decode<T>(sent: &RequestBody, decode: impl FnOnce() -> T) -> T {
    if sent.plain().len() < QUICK_BYTES { decode() } else { tokio::task::block_in_place(decode) }
}

/// Returns the records, the number of objects that could not be read, and the number of records about these objects.
fn read(body: &[u8], peer: Peer, context: &Context) -> Result<(Batch, usize, usize), HttpError> {
    let mut reader = FrameReader::new(&JSON, peer, &context.intake.metrics);
    // Some senders begin a text with a byte order mark.
    let text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if text.trim_ascii_start().starts_with(b"[") {
        read_list(body, &context.limits, &mut reader)?;
    } else {
        read_lines(body, &context.limits, &mut reader)?;
    }
    let (rejected, undecoded) = reader.rejected();
    let batch = reader.take();
    if let (true, Some(row)) = (batch.len() == undecoded, batch.row(0)) {
        return Err(HttpError(StatusCode::BAD_REQUEST, row.message.to_owned()));
    }
    Ok((batch, rejected, undecoded))
}

fn read_lines(body: &[u8], limits: &Limits, reader: &mut FrameReader<'_>) -> Result<(), HttpError> {
    let mut framer = (FRAME_FORMAT.framer)(limits.frame_bytes);
    let too_large = |error: FrameError| HttpError(StatusCode::PAYLOAD_TOO_LARGE, error.to_string());
    let mut at = 0;
    while let FrameScan::Frame { from, to, next } = framer.scan(&body[at..]).map_err(too_large)? {
        reader.read(&body[at + from..at + to]);
        at += next;
        not_too_many(reader, at, limits)?;
    }
    if let Some(FrameScan::Frame { from, to, .. }) = framer.last_frame(&body[at..], InputEnd::Stream) {
        reader.read(&body[at + from..at + to]);
    }
    Ok(())
}

fn read_list(body: &[u8], limits: &Limits, reader: &mut FrameReader<'_>) -> Result<(), HttpError> {
    let (limit, mut longest, mut bytes) = (limits.frame_bytes, 0, 0);
    json_list::read(body, |value| {
        longest = longest.max(value.len());
        if longest <= limit && not_too_many(reader, bytes, limits).is_ok() {
            bytes += value.len();
            reader.read(value);
        }
    })
    .map_err(|error| HttpError(StatusCode::BAD_REQUEST, error.to_string()))?;
    match longest <= limit {
        true => not_too_many(reader, bytes, limits),
        false => Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, FrameError::TooLong(limit).to_string())),
    }
}

/// Refuses a body with too many records. `bytes` is the size of the part of the body that was read.
fn not_too_many(reader: &FrameReader<'_>, bytes: usize, limits: &Limits) -> Result<(), HttpError> {
    let (most, records) = (limits.body_records(), reader.values());
    let why = if records > most {
        format!("the body contains more than {most} records: send fewer at once")
    } else if is_too_dense(records, bytes) {
        format!(
            "the body contains {records} records in its first {bytes} bytes: at most one per {MIN_RECORD_BYTES} \
             bytes is accepted"
        )
    } else {
        return Ok(());
    };
    Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, why))
}

/// Receives a record that `HTTPHandler` sends as a form, in the body or in the query string of a request to any path.
pub(super) async fn form(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    let is_form = content_type(&headers) == "application/x-www-form-urlencoded";
    let query = uri.query().filter(|_| method == Method::GET);
    if query.is_none() && !(method == Method::POST && is_form) {
        return Err(HttpError(StatusCode::NOT_FOUND, format!("unknown path {}", uri.path())));
    }
    if is_from_browser(&headers) {
        return Err(HttpError(StatusCode::FORBIDDEN, "forms from web pages are not accepted".to_owned()));
    }
    let sent = sent?;
    let (form, otherwise) =
        query.map_or((sent.plain(), StatusCode::BAD_REQUEST), |query| (query.as_bytes(), StatusCode::NOT_FOUND));
    let origin = peer.origin();
    let mut reader = FrameReader::new(&HTTP, peer, &context.intake.metrics);
    reader.count_frame();
    reader.push(&form::read(form).map_err(|error| HttpError(otherwise, error.to_string()))?);
    // Wait without a time limit: `HTTPHandler` ignores the answer, so a refused record would be lost.
    let batch = reader.take();
    let room = context.intake.room_for(origin, &batch).await;
    let outcome = context.intake.submit(batch, None, room);
    // Free the reservation of the body only now, when its records have one.
    drop(sent);
    wait_until_stored(outcome).await?;
    Ok(StatusCode::OK.into_response())
}

/// True if a browser sent the request. A page of any origin can load an image whose query string has a record, and this
/// request has no header `Origin`. Only browsers send the headers checked here. Several headers are checked, because
/// browsers omit `Sec-Fetch-Site` in requests to other machines.
fn is_from_browser(headers: &HeaderMap) -> bool {
    let has = |name: &str| headers.contains_key(name);
    let is_foreign = match headers.get("sec-fetch-site") {
        Some(site) => site != "none",
        None => has("accept-language"),
    };
    is_foreign || has("origin") || has("referer") || has("cookie")
}

/// Hands the records to the stores, and waits until they are stored. If the answer is "try again later", no record was
/// handed over.
pub(super) async fn commit(batch: Batch, mut turn: DecodePermit, context: &Context) -> Result<(), HttpError> {
    if batch.is_empty() {
        return Ok(());
    }
    turn.room.shrink(batch.bytes());
    let room =
        timeout_at(turn.until, context.intake.room_for(turn.room.origin(), &batch)).await.map_err(|_| overloaded())?;
    drop(turn);
    wait_until_stored(context.intake.submit(batch, None, room)).await
}

fn overloaded() -> HttpError {
    let why = "the stores are too slow: limits.waiting_bytes of records wait for them".to_owned();
    HttpError(StatusCode::TOO_MANY_REQUESTS, why)
}

async fn wait_until_stored(outcome: oneshot::Receiver<Outcome>) -> Result<(), HttpError> {
    match outcome.await {
        Ok(Outcome::Committed) => Ok(()),
        // Any other result: it is unknown whether the records were stored.
        _ => {
            let why = "the records could not be stored: send them again".to_owned();
            Err(HttpError(StatusCode::SERVICE_UNAVAILABLE, why))
        }
    }
}

/// Returns the content type without its parameters.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    let whole = header_text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    whole.split(';').next().unwrap_or_default().trim()
}

pub(super) fn wrong_type(found: &str, wanted: &str) -> HttpError {
    HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("content type {found:?} is not accepted here: send {wanted}"))
}
