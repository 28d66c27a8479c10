//! Records by HTTP: JSON, JSON lines, and the forms of `logging.handlers.HTTPHandler`. OTLP: `otlp.rs`.
//!
//! The answer comes when the records are committed.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::guard::text;
use super::{Context, Problem};
use crate::batch::Batch;
use crate::config::Limits;
use crate::decoders::inflate::{self, InflateError};
use crate::decoders::{form, json_list};
use crate::delivery::Outcome;
use crate::sources::framing::{Ended, FrameError, Framer, Protocol, Step};
use crate::sources::reading::{Peer, Reader};

/// `POST /ingest`: JSON objects, one after the other or in a list.
///
/// Where some can be read and others not, those come in as records of `logspool.undecoded`, as on a connection; where
/// none can be read, nothing is stored.
pub(super) async fn objects(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    match content_type(&headers) {
        "application/json" | "application/x-ndjson" | "application/jsonl" => {}
        other => return Err(wrong_type(other, "application/json or application/x-ndjson")),
    }
    let body = whole(&headers, body, &context)?;
    let mut reader = Reader::new(Protocol::Json, peer, &context.intake.metrics);
    if body.trim_ascii_start().starts_with(b"[") {
        read_list(&body, &context.limits, &mut reader)?;
    } else {
        read_lines(&body, &context.limits, &mut reader)?;
    }
    let rejected = reader.rejected;
    let records = reader.batch.len() - rejected;
    if let (0, Some(row)) = (records, reader.batch.row(0)) {
        return Err(Problem(StatusCode::BAD_REQUEST, row.message.to_owned()));
    }
    commit(reader.batch, &context).await?;
    let mut answer = serde_json::json!({ "records": records });
    if rejected > 0 {
        answer["rejected"] = rejected.into();
    }
    Ok(axum::Json(answer).into_response())
}

fn read_lines(body: &[u8], limits: &Limits, reader: &mut Reader<'_>) -> Result<(), Problem> {
    let Some(mut framer) = Framer::new(Protocol::Json, limits.frame_bytes) else { return Ok(()) };
    let too_large = |error: FrameError| Problem(StatusCode::PAYLOAD_TOO_LARGE, error.to_string());
    let mut at = 0;
    while let Step::Frame { from, to, next } = framer.step(&body[at..]).map_err(too_large)? {
        reader.read(&body[at + from..at + to]);
        at += next;
        not_too_many(reader, limits)?;
    }
    if let Some(Step::Frame { from, to, .. }) = framer.rest(&body[at..], Ended::Stream) {
        reader.read(&body[at + from..at + to]);
    }
    Ok(())
}

fn read_list(body: &[u8], limits: &Limits, reader: &mut Reader<'_>) -> Result<(), Problem> {
    let (limit, mut longest) = (limits.frame_bytes, 0);
    json_list::read(body, |value| {
        longest = longest.max(value.len());
        if longest <= limit && reader.batch.len() <= limits.body_records() {
            reader.read(value);
        }
    })
    .map_err(|error| Problem(StatusCode::BAD_REQUEST, format!("the body is no JSON list: {error}")))?;
    match longest <= limit {
        true => not_too_many(reader, limits),
        false => Err(Problem(StatusCode::PAYLOAD_TOO_LARGE, FrameError::TooLong(limit).to_string())),
    }
}

fn not_too_many(reader: &Reader<'_>, limits: &Limits) -> Result<(), Problem> {
    let most = limits.body_records();
    if reader.batch.len() <= most {
        return Ok(());
    }
    Err(Problem(StatusCode::PAYLOAD_TOO_LARGE, format!("the body holds more than {most} records: send fewer at once")))
}

/// What `HTTPHandler` sends, to any path: a form in the body or in the query.
pub(super) async fn form(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let is_form = content_type(&headers) == "application/x-www-form-urlencoded";
    let sent = match (&method, uri.query()) {
        (&Method::GET, Some(query)) => Bytes::copy_from_slice(query.as_bytes()),
        (&Method::POST, _) if is_form => came(body, &context)?,
        _ => return Err(Problem(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))),
    };
    if is_of_a_page(&headers) {
        return Err(Problem(StatusCode::FORBIDDEN, "forms of pages are not taken".to_owned()));
    }
    let mut reader = Reader::new(Protocol::Http, peer, &context.intake.metrics);
    reader.count_frame();
    match form::read(&sent) {
        Ok(record) => reader.push(&record),
        Err(error) if method == Method::GET => return Err(Problem(StatusCode::NOT_FOUND, error.to_string())),
        Err(error) => return Err(Problem(StatusCode::BAD_REQUEST, error.to_string())),
    }
    commit(reader.batch, &context).await?;
    Ok(StatusCode::OK.into_response())
}

/// Whether a browser sends it. Pages of any origin may ask for an image with records in its query, and no `Origin`
/// tells then. Only browsers say these words; to addresses of other machines they do not say from where a request comes.
fn is_of_a_page(headers: &HeaderMap) -> bool {
    let has = |name: &str| headers.contains_key(name);
    let is_foreign = match headers.get("sec-fetch-site") {
        Some(site) => site != "none",
        None => has("accept-language"),
    };
    is_foreign || has("origin") || has("referer") || has("cookie")
}

/// Waits until the records are stored.
async fn commit(batch: Batch, context: &Context) -> Result<(), Problem> {
    if batch.is_empty() {
        return Ok(());
    }
    match context.intake.submit(batch, None).await.await {
        Ok(Outcome::Committed) => Ok(()),
        _ => Err(not_stored()),
    }
}

/// Nobody knows whether the records are stored.
pub(super) fn not_stored() -> Problem {
    Problem(StatusCode::SERVICE_UNAVAILABLE, "the records could not be stored: send them again".to_owned())
}

/// The body, if it is not too large.
fn came(body: Result<Bytes, BytesRejection>, context: &Context) -> Result<Bytes, Problem> {
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(context),
        status => Problem(status, error.body_text()),
    })
}

fn too_large(context: &Context) -> Problem {
    let why = format!("the body is longer than {} bytes (16 times limits.frame_bytes)", context.limits.body_bytes());
    Problem(StatusCode::PAYLOAD_TOO_LARGE, why)
}

/// The body without its compression.
pub(super) fn whole(
    headers: &HeaderMap,
    body: Result<Bytes, BytesRejection>,
    context: &Context,
) -> Result<Bytes, Problem> {
    let body = came(body, context)?;
    match text(headers, &header::CONTENT_ENCODING) {
        None | Some("identity") => Ok(body),
        Some("gzip") => {
            let mut inflated = Vec::new();
            match inflate::gzip(&body, context.limits.body_bytes(), &mut inflated) {
                Ok(()) => Ok(Bytes::from(inflated)),
                Err(InflateError::TooLarge(_)) => Err(too_large(context)),
                Err(error) => Err(Problem(StatusCode::BAD_REQUEST, error.to_string())),
            }
        }
        Some(other) => {
            let why = format!("content encoding {other:?} is not known: gzip, or none");
            Err(Problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
        }
    }
}

/// Without its parameters.
pub(super) fn content_type(headers: &HeaderMap) -> &str {
    let whole = text(headers, &header::CONTENT_TYPE).unwrap_or_default();
    whole.split(';').next().unwrap_or_default().trim()
}

pub(super) fn wrong_type(found: &str, wanted: &str) -> Problem {
    Problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("content type {found:?} is not taken here: send {wanted}"))
}
