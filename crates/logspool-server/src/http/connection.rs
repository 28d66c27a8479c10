//! Serves the HTTP requests of one connection.

use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tower_service::Service as _;

use super::length_conflict::{self, InspectedStream};
use crate::peer::Peer;
use crate::sources::admission::Slot;
use crate::sources::shared::SharedState;
use crate::stop::{sleep_until, stopped};

/// Serves the requests of a connection. A connection with a reserved slot is closed after one answer.
pub async fn connection<R, W>((read, write): (R, W), peer: &Peer, slot: &Slot, shared: &SharedState)
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
