//! Receives records by HTTP: JSON, JSON lines, and the forms of `logging.handlers.HTTPHandler`. OTLP is in `otlp.rs`.
//!
//! The answer is sent after every store has committed the records.

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::body::{ROOM_TIMEOUT, RequestBody};
use super::context::Context;
use super::error::HttpError;
use super::guard::{content_type, is_from_browser};
use crate::batch::Batch;
use crate::budget::Reservation;
use crate::connection::frame_reader::FrameReader;
use crate::connection::framing::{FrameError, FrameScan, InputEnd};
use crate::decoders::density::{MIN_RECORD_BYTES, is_too_dense};
use crate::decoders::{form, json_list, line_parts};
use crate::delivery::Outcome;
use crate::http::protocol::HTTP;
use crate::limits::Limits;
use crate::origin::Origin;
use crate::peer::Peer;
use crate::protocols::json::{FRAME_FORMAT, JSON};

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
    let kind = BodyKind::of(content_type(&headers))?;
    let sent = sent?;
    let turn = DecodePermit::wait(peer.origin(), &context).await?;
    let (batch, rejected, undecoded) =
        decode(&sent, || read(&sent.inflated(&headers, &context.limits)?, kind, peer, &context))?;
    drop(sent);
    let records = batch.len() - undecoded;
    commit(batch, turn, &context).await?;
    let mut answer = serde_json::json!({ "records": records });
    if rejected > 0 {
        answer["rejected"] = rejected.into();
    }
    Ok(axum::Json(answer).into_response())
}

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    /// JSON objects, one after the other or in a list.
    Json,
    /// JSON objects, or lines of text.
    Text,
}

impl BodyKind {
    /// The content types that senders give JSON lines have many names.
    const JSON: [&str; 12] = [
        "application/json",
        "application/ndjson",
        "application/x-ndjson",
        "application/jsonl",
        "application/x-jsonl",
        "application/jsonlines",
        "application/x-jsonlines",
        "application/json-lines",
        "application/json-seq",
        "application/x-json-stream",
        "application/stream+json",
        "text/json",
    ];

    fn of(content_type: &str) -> Result<Self, HttpError> {
        if Self::JSON.iter().any(|known| known.eq_ignore_ascii_case(content_type)) {
            return Ok(Self::Json);
        }
        let text = ["text/plain", "text/x-ndjson", "text/ndjson", "text/jsonl"];
        match text.iter().any(|known| known.eq_ignore_ascii_case(content_type)) {
            true => Ok(Self::Text),
            false => Err(wrong_type(content_type, "application/json, application/x-ndjson or text/plain")),
        }
    }
}

/// Decodes a body. While this thread decodes a long body, its other tasks run on another thread.
pub(super) fn decode<T>(sent: &RequestBody, decode: impl FnOnce() -> T) -> T {
    decode_bytes(sent.plain().len(), decode)
}

/// As [`decode`], for a body of this number of bytes.
pub(super) fn decode_bytes<T>(bytes: usize, decode: impl FnOnce() -> T) -> T {
    if bytes < QUICK_BYTES { decode() } else { tokio::task::block_in_place(decode) }
}

/// Returns the records, the number of objects that could not be read, and the number of records about these objects.
fn read(body: &[u8], kind: BodyKind, peer: Peer, context: &Context) -> Result<(Batch, usize, usize), HttpError> {
    let mut reader = FrameReader::new(&JSON, peer, &context.intake.metrics);
    let body = body.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(body);
    if kind == BodyKind::Text && !matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
        read_text(body, &context.limits, &mut reader)?;
    } else if body.trim_ascii_start().starts_with(b"[") {
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

/// Calls `each` with every JSON object of a body. Objects end with a line feed or NUL, and may have several lines.
pub(super) fn each_object(body: &[u8], limits: &Limits, mut each: impl FnMut(&[u8])) -> Result<(), HttpError> {
    let mut framer = (FRAME_FORMAT.framer)(limits.frame_bytes);
    let too_large = |error: FrameError| HttpError(StatusCode::PAYLOAD_TOO_LARGE, error.to_string());
    let (mut at, mut objects) = (0, 0);
    let mut take = |object: &[u8]| {
        let object = object.trim_ascii();
        if !object.is_empty() {
            objects += 1;
            each(object);
        }
    };
    while let FrameScan::Frame { from, to, next } = framer.scan(&body[at..]).map_err(too_large)? {
        take(&body[at + from..at + to]);
        at += next;
    }
    if let Some(FrameScan::Frame { from, to, .. }) = framer.last_frame(&body[at..], InputEnd::Stream) {
        take(&body[at + from..at + to]);
    }
    match objects == 0 && !body.trim_ascii().is_empty() {
        true => Err(HttpError(StatusCode::BAD_REQUEST, "the body has no JSON object".to_owned())),
        false => Ok(()),
    }
}

/// Each line of text is a record.
fn read_text(body: &[u8], limits: &Limits, reader: &mut FrameReader<'_>) -> Result<(), HttpError> {
    let mut at = 0;
    for line in body.split(|byte| *byte == b'\n') {
        at += line.len() + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > limits.frame_bytes {
            return Err(HttpError(StatusCode::PAYLOAD_TOO_LARGE, FrameError::TooLong(limits.frame_bytes).to_string()));
        }
        if line.starts_with(b"{") {
            reader.read(line);
        } else if !line.trim_ascii().is_empty() {
            reader.count_frame();
            reader.push(&line_parts::read_text(line));
        }
        not_too_many(reader, at, limits)?;
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

/// Refuses records at once if a store is known to fail, so that their sender keeps them.
pub(super) fn refuse_if_failing(batch: &Batch, context: &Context) -> Result<(), HttpError> {
    if let Some((store, trouble)) = context.intake.metrics.failing_stores().into_iter().next()
        && !batch.is_empty()
    {
        let why = format!("the store {store} does not work: {}", trouble.why);
        return Err(HttpError(StatusCode::SERVICE_UNAVAILABLE, why));
    }
    Ok(())
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

pub(super) fn wrong_type(found: &str, wanted: &str) -> HttpError {
    HttpError(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("content type {found:?} is not accepted here: send {wanted}"))
}
