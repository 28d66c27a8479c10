//! `POST /v1/logs`: receives OTLP logs, and sends the answers that the OTLP specification requires.
//!
//! | answer | when |
//! |---|---|
//! | 200 | the records are committed; unreadable ones are counted in `partial_success` |
//! | 400, 413, 415 | nothing was taken, and a retry would not help |
//! | 429, 503 | nothing was taken: retry after `Retry-After` seconds |
//!
//! A body that arrives too late is answered with 503, because many exporters do not retry after 408.

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::body::RequestBody;
use super::context::Context;
use super::error::{ErrorReason, HttpError};
use super::guard::content_type;
use super::ingest::{self, DecodePermit, wrong_type};
use super::paths;
use crate::batch::Batch;
use crate::connection::frame_reader::FrameReader;
use crate::decoders::lenient;
use crate::decoders::otlp::{self, Encoding, RejectedRecords, UnreadableRecord};
use crate::http::protocol::HTTP;
use crate::peer::Peer;
use crate::record::Record;

/// Maximum number of unreadable records per request that are stored as records about the error. Further ones are only
/// counted.
///
/// Chosen: ten records are enough to see the problem. With more, a small body could become many records.
const MAX_SHOWN: u64 = 10;

/// Receives the records of a request, and answers when they are committed.
pub(super) async fn logs(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    sent: Result<RequestBody, HttpError>,
) -> Result<Response, HttpError> {
    let kind = content_type(&headers);
    let encoding = Encoding::of(kind).ok_or_else(|| wrong_type(kind, "application/x-protobuf or application/json"))?;
    let sent = sent.map_err(|HttpError(status, why)| match status {
        StatusCode::REQUEST_TIMEOUT => HttpError(StatusCode::SERVICE_UNAVAILABLE, why),
        _ => HttpError(status, why),
    })?;
    let turn = DecodePermit::wait(peer.origin(), &context).await?;
    let (batch, rejected) =
        ingest::decode(&sent, || read(encoding, &sent.inflated(&headers, &context.limits)?, peer, &context))?;
    drop(sent);
    ingest::refuse_if_failing(&batch, &context)?;
    ingest::commit(batch, turn, &context).await?;
    Ok(([(header::CONTENT_TYPE, encoding.content_type())], encoding.success(&rejected)).into_response())
}

/// Reads the records of a request. The rejected ones are counted for the answer.
pub(super) fn read(
    encoding: Encoding,
    body: &[u8],
    peer: Peer,
    context: &Context,
) -> Result<(Batch, RejectedRecords), HttpError> {
    let mut reader = FrameReader::new(&HTTP, peer, &context.intake.metrics);
    reader.count_frame();
    let (mut taken, mut rejected) = (0_u64, RejectedRecords::default());
    let mut each = |record: Result<Record<'_>, UnreadableRecord<'_>>| match record {
        Ok(record) => {
            taken += 1;
            reader.push(&record);
        }
        Err(UnreadableRecord { bytes, error }) => {
            rejected.records += 1;
            let why = error.to_string();
            if rejected.records <= MAX_SHOWN {
                reader.reject(bytes, &why);
            }
            if rejected.why.is_empty() {
                rejected.why = why;
            }
        }
    };
    let limits = otlp::OtlpLimits::default();
    let read = match encoding {
        Encoding::Protobuf => otlp::read_protobuf(body, &limits, each),
        Encoding::Json => match otlp::read_json(body, &limits, &mut each) {
            // The whole body is checked before its first record, so no record is read twice.
            Err(otlp::OtlpError::NotJson(error)) => {
                let again = otlp::read_json(&lenient::rewritten(body), &limits, &mut each);
                // The position in the body as it was sent is of more use.
                again.map_err(|_| otlp::OtlpError::NotJson(error))
            }
            read => read,
        },
    };
    read.map_err(|error| {
        let is_too_large = matches!(error, otlp::OtlpError::TooLarge);
        let status = if is_too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
        HttpError(status, error.to_string())
    })?;
    if taken == 0 && rejected.records > 0 {
        let why = format!("none of the {} log records can be read: {}", rejected.records, rejected.why);
        return Err(HttpError(StatusCode::BAD_REQUEST, why));
    }
    Ok((reader.take(), rejected))
}

/// Converts all error answers of the OTLP path to the form that OTLP specifies.
pub(super) async fn errors(request: Request, next: Next) -> Response {
    let is_otlp = request.uri().path() == paths::OTLP;
    let encoding = Encoding::of(content_type(request.headers())).unwrap_or(Encoding::Json);
    let response = next.run(request).await;
    let status = response.status();
    if !is_otlp || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (mut parts, _) = response.into_parts();
    let why = match parts.extensions.get::<ErrorReason>() {
        Some(ErrorReason(why)) => why,
        None => status.canonical_reason().unwrap_or_default(),
    };
    let body = encoding.failure(status.as_u16(), why);
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(encoding.content_type()));
    Response::from_parts(parts, Body::from(body))
}
