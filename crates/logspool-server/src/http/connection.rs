//! Serves the HTTP requests of one connection, in HTTP/1 or HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::BytesMut;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tower_service::Service as _;

use super::length_conflict::{self, InspectedStream};
use crate::connection::admission::Slot;
use crate::connection::shared::SharedState;
use crate::peer::Peer;
use crate::stop::{sleep_until, stopped};

/// The first bytes of a connection with HTTP/2 (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Maximum number of requests at the same time on a connection with HTTP/2.
///
/// Chosen: exporters of OTLP send one request after the other. A proxy in front of the service uses several
/// connections.
const HTTP2_STREAMS: u32 = 32;

/// Maximum number of bytes that a connection with HTTP/2 may send before the service has read them.
///
/// Chosen: as much as for a connection with frames, four times. A sender in the same data centre does not wait for the
/// window, and 4,096 connections take at most 1 GiB only if all of them stop in the middle of their requests.
const HTTP2_WINDOW_BYTES: u32 = 256 * 1024;

/// Maximum number of bytes of an answer that wait in a stream of HTTP/2, and of the headers of a request.
const HTTP2_BUFFER_BYTES: usize = 64 * 1024;
const HTTP2_HEADER_BYTES: u32 = 16 * 1024;

/// The interval of pings that detect a machine that has disappeared, and the time for their answer.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(60);
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(20);

/// A connection with HTTP/2 may be idle for this number of `limits.header_seconds`.
///
/// Chosen: exporters of OTLP send every five or ten seconds, and would have to connect again for each request.
const HTTP2_IDLE_FACTOR: u32 = 3;

/// Time for the end of a connection with HTTP/2 after the service has announced it.
const HTTP2_END_TIME: Duration = Duration::from_secs(5);

/// Serves the requests of a connection. `first` are the bytes that were received before. A connection with a reserved
/// slot is closed after one answer.
pub async fn connection<S>(mut stream: S, mut first: BytesMut, peer: &Peer, slot: &Slot, shared: &SharedState)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let until = Instant::now() + slot.header_time(shared.limits.header_time());
    while first.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(&first) {
        match timeout_at(until, stream.read_buf(&mut first)).await {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(_)) => {}
            Err(_) => return shared.intake.metrics.close("slow"),
        }
    }
    let is_http2 = first.starts_with(HTTP2_PREFACE);
    let (read, write) = tokio::io::split(stream);
    let read = AsyncReadExt::chain(std::io::Cursor::new(first), read);
    match is_http2 {
        true => http2((read, write), peer, slot, shared).await,
        false => http1((read, write), peer, slot, shared).await,
    }
}

async fn http1<R, W>((read, write): (R, W), peer: &Peer, slot: &Slot, shared: &SharedState)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).max_buf_size(64 * 1024);
    // The timeout also applies between requests: an idle keep-alive connection is closed when it expires.
    builder.header_read_timeout(slot.header_time(shared.limits.header_time()));
    builder.keep_alive(!slot.is_reserved());
    let (router, peer) = (shared.http.clone(), peer.clone());
    let (read, lengths) = InspectedStream::new(read);
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        let is_refused = lengths.found();
        async move {
            match is_refused {
                true => Ok(length_conflict::refuse()),
                false => router.call(request).await,
            }
        }
    });
    let stream = TokioIo::new(tokio::io::join(read, write));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    let mut stop = shared.stop.clone();
    let until = slot.is_reserved().then(|| Instant::now() + shared.limits.header_time());
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = sleep_until(until) => return shared.intake.metrics.close("slow"),
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!("HTTP connection ended: {error}");
    }
}

/// The requests of a connection that are not answered yet.
#[derive(Debug, Default)]
struct OpenRequests {
    number: AtomicUsize,
    changed: Notify,
}

/// Counts a request until its answer is sent or given up.
struct OpenRequest(Arc<OpenRequests>);

impl OpenRequest {
    fn begin(all: &Arc<OpenRequests>) -> Self {
        // Relaxed, here and below: the number decides only how long the connection may be idle.
        all.number.fetch_add(1, Ordering::Relaxed);
        all.changed.notify_one();
        Self(all.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.number.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

async fn http2<R, W>((read, write): (R, W), peer: &Peer, slot: &Slot, shared: &SharedState)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_stream_window_size(HTTP2_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_WINDOW_BYTES)
        .max_send_buf_size(HTTP2_BUFFER_BYTES)
        .max_header_list_size(HTTP2_HEADER_BYTES)
        .keep_alive_interval(HTTP2_PING_INTERVAL)
        .keep_alive_timeout(HTTP2_PING_TIMEOUT);
    let (router, peer) = (shared.http.clone(), peer.clone());
    let open = Arc::new(OpenRequests::default());
    let requests = open.clone();
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(peer.clone());
        let mut router = router.clone();
        let begun = OpenRequest::begin(&requests);
        async move { router.call(request).await.map(|response| counted(response, begun)) }
    });
    let stream = TokioIo::new(tokio::io::join(read, write));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    let mut stop = shared.stop.clone();
    // A connection with a reserved slot has less time, as with HTTP/1.
    let idle = match slot.is_reserved() {
        true => slot.header_time(shared.limits.header_time()),
        false => shared.limits.header_time() * HTTP2_IDLE_FACTOR,
    };
    let end_time = shared.limits.header_time().min(HTTP2_END_TIME);
    loop {
        let is_idle = open.number.load(Ordering::Relaxed) == 0;
        let until = is_idle.then(|| Instant::now() + idle);
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!("HTTP/2 connection ended: {error}");
                }
                return;
            }
            () = open.changed.notified() => continue,
            () = sleep_until(until) => {}
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                // The end of the service limits this time.
                _ = connection.await;
                return;
            }
        }
        // The peer is told that the connection ends, and sends its next request on a new one.
        connection.as_mut().graceful_shutdown();
        if timeout(end_time, connection.as_mut()).await.is_err() {
            shared.intake.metrics.close("slow");
        }
        return;
    }
}

/// Keeps the request counted until the last byte of its answer was taken.
fn counted(response: Response, begun: OpenRequest) -> Response {
    use axum::body::HttpBody as _;
    if response.body().is_end_stream() {
        return response;
    }
    response.map(|body| Body::new(CountedBody { body, _begun: begun }))
}

/// The body of an answer whose request is counted.
struct CountedBody {
    body: Body,
    _begun: OpenRequest,
}

impl axum::body::HttpBody for CountedBody {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}
