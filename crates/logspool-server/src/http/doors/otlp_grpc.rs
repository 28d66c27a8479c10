//! OTLP over gRPC: `LogsService/Export`, which OpenTelemetry's SDKs and collector use by default.
//!
//! The body is received within the limits of all HTTP bodies before `tonic` reads the message in it. So one peer takes
//! no more memory than with OTLP over HTTP.

use std::future::Future;
use std::pin::Pin;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use bytes::{Buf, BufMut, Bytes};
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::UnaryService;
use tonic::{Code, Status};

use super::door::Door;
use super::receive::store;
use crate::decoders::otlp::Encoding;
use crate::http::body::{RequestBody, too_large};
use crate::http::context::Context;
use crate::http::error::HttpError;
use crate::http::guard::header_text;
use crate::http::ingest::{self, DecodePermit, wrong_type};
use crate::http::otlp;
use crate::peer::Peer;

/// The declaration of OTLP over gRPC; see the module documentation.
pub(super) const OTLP_GRPC: Door = Door { routes, failure };

/// Number of bytes before a message: a flag and its length.
const PREFIX_BYTES: usize = 5;

fn routes(router: Router<Context>) -> Router<Context> {
    router.route("/opentelemetry.proto.collector.logs.v1.LogsService/Export", post(export))
}

async fn export(
    State(context): State<Context>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Result<Response, HttpError> {
    let kind = header_text(request.headers(), &header::CONTENT_TYPE).unwrap_or_default();
    if !matches!(kind, "application/grpc" | "application/grpc+proto") {
        return Err(wrong_type(kind, "application/grpc"));
    }
    let (parts, body) = request.into_parts();
    let sent = RequestBody::from_request(Request::from_parts(parts.clone(), body), &context).await?;
    let limit = context.limits.body_bytes();
    // `tonic` takes memory for the length that the message announces, and its answer to a length above the limit makes
    // exporters send the message again.
    if announced(sent.plain()).is_some_and(|length| length > sent.plain().len()) {
        let why = "the message is shorter than the length before it".to_owned();
        return Err(HttpError(StatusCode::BAD_REQUEST, why));
    }
    let turn = DecodePermit::wait(peer.origin(), &context).await?;
    let (sent, room) = sent.into_bytes();
    let mut grpc = tonic::server::Grpc::new(BytesCodec)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(limit);
    let export = Export { context: context.clone(), peer, turn: Some(turn) };
    let request = Request::from_parts(parts, Body::from(sent));
    let response = grpc.unary(export, request).await;
    drop(room);
    let is_too_large = response.extensions().get::<Status>().is_some_and(|status| {
        status.code() == Code::ResourceExhausted && status.message().starts_with("Error decompressing")
    });
    if is_too_large {
        return Err(too_large(&context.limits));
    }
    Ok(response.map(Body::new))
}

/// The length that the first message has by its prefix.
fn announced(body: &[u8]) -> Option<usize> {
    let length = body.get(1..PREFIX_BYTES)?.first_chunk()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Stores the records of one message.
struct Export {
    context: Context,
    peer: Peer,
    turn: Option<DecodePermit>,
}

impl UnaryService<Bytes> for Export {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (context, peer, turn) = (self.context.clone(), self.peer.clone(), self.turn.take());
        Box::pin(async move {
            let turn = turn.ok_or_else(|| Status::internal("a call has one message"))?;
            let message = request.into_inner();
            let stored = async {
                let (batch, rejected) =
                    ingest::decode_bytes(message.len(), || otlp::read(Encoding::Protobuf, &message, peer, &context))?;
                drop(message);
                store(&context, batch, turn).await?;
                Ok::<_, HttpError>(Encoding::Protobuf.success(&rejected))
            };
            match stored.await {
                Ok(answer) => Ok(tonic::Response::new(answer.into())),
                Err(HttpError(status, why)) => Err(Status::new(code(status), why)),
            }
        })
    }
}

fn failure(status: StatusCode, why: &str) -> Response {
    Status::new(code(status), why).into_http()
}

/// The code for an HTTP status. The exporters of OTLP send records again after `UNAVAILABLE`, and drop them after the
/// other codes of this function.
fn code(status: StatusCode) -> Code {
    match status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Code::Unavailable
        }
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Internal,
    }
}

/// Passes messages on as bytes: the decoder of OTLP reads them without structs.
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
