//! Detects requests that give their length twice: `Content-Length` and `Transfer-Encoding`.
//!
//! A proxy before the service may believe the other header, and takes a part of the body for the next request then
//! (request smuggling). hyper follows the standard: it believes `Transfer-Encoding` and removes the other header, so
//! later code cannot see that there were two. A server may refuse such a request (RFC 9112, 6.3). For this [`Watched`]
//! inspects the bytes before hyper gets them, and follows heads and bodies.
//!
//! It makes no other decision. If it cannot follow a request, hyper's rule applies.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncRead, ReadBuf};

use super::error::HttpError;

/// Bytes of a line that are kept: enough for the relevant names and values.
const LINE_BYTES: usize = 256;

/// True once a request with two lengths was read from a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct LengthConflict(Arc<AtomicBool>);

impl LengthConflict {
    /// True if such a request was found.
    pub fn found(&self) -> bool {
        // Relaxed: set and read by the task of the connection.
        self.0.load(Ordering::Relaxed)
    }
}

/// The answer to such a request, after which the connection is closed.
pub(super) fn refuse() -> Response {
    let why = "the request has both Content-Length and Transfer-Encoding: send one of them".to_owned();
    let mut response = HttpError(StatusCode::BAD_REQUEST, why).into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A stream of requests that is inspected while it is read.
#[derive(Debug)]
pub(super) struct InspectedStream<R> {
    stream: R,
    heads: RequestTracker,
    found: LengthConflict,
}

impl<R> InspectedStream<R> {
    /// Wraps a stream. Also returns the flag for requests with two lengths.
    pub fn new(stream: R) -> (Self, LengthConflict) {
        let found = LengthConflict::default();
        (Self { stream, heads: RequestTracker::default(), found: found.clone() }, found)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for InspectedStream<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.heads.read(&buffer.filled()[before..]) {
            self.found.0.store(true, Ordering::Relaxed);
        }
        read
    }
}

/// Position in a request.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    /// In a line of the head.
    #[default]
    Head,
    /// In a body; the number of bytes left.
    Body(u64),
    /// In the line with the length of a chunk.
    ChunkLength,
    /// In a chunk; the number of bytes left.
    Chunk(u64),
    /// In the line that ends a chunk.
    ChunkEnd,
    /// In a line after the last chunk.
    Trailer,
    /// Not known: the bytes are not a valid request.
    Lost,
}

/// Follows the heads of requests.
#[derive(Debug, Default)]
struct RequestTracker {
    at: RequestPosition,
    /// The current line, cut at [`LINE_BYTES`].
    line: Vec<u8>,
    has_length: bool,
    /// `None`: no `Content-Length`, or its value cannot be read.
    length: Option<u64>,
    has_encoding: bool,
}

impl RequestTracker {
    /// Inspects the next bytes. Returns true if a head with two lengths ends in them.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut found = false;
        while !bytes.is_empty() && self.at != RequestPosition::Lost {
            match self.at {
                RequestPosition::Body(left) | RequestPosition::Chunk(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    bytes = &bytes[taken..];
                    self.at = match (self.at, left - taken as u64) {
                        (RequestPosition::Body(_), 0) => RequestPosition::Head,
                        (RequestPosition::Body(_), left) => RequestPosition::Body(left),
                        (_, 0) => RequestPosition::ChunkEnd,
                        (_, left) => RequestPosition::Chunk(left),
                    };
                }
                _ => {
                    let end = memchr::memchr(b'\n', bytes);
                    let piece = &bytes[..end.unwrap_or(bytes.len())];
                    self.line.extend_from_slice(&piece[..piece.len().min(LINE_BYTES - self.line.len())]);
                    bytes = &bytes[end.map_or(bytes.len(), |end| end + 1)..];
                    if end.is_some() {
                        found |= self.end_line();
                        self.line.clear();
                    }
                }
            }
        }
        found
    }

    /// Processes a complete line. Returns true if it ends a request head that has two lengths.
    fn end_line(&mut self) -> bool {
        let line = self.line.trim_ascii();
        match self.at {
            RequestPosition::Head if line.is_empty() => {
                let (has_length, has_encoding) = (self.has_length, self.has_encoding);
                self.at = match (has_encoding, has_length, self.length) {
                    (true, ..) => RequestPosition::ChunkLength,
                    (false, false, _) | (false, true, Some(0)) => RequestPosition::Head,
                    (false, true, Some(length)) => RequestPosition::Body(length),
                    (false, true, None) => RequestPosition::Lost,
                };
                (self.has_length, self.has_encoding, self.length) = (false, false, None);
                return has_length && has_encoding;
            }
            RequestPosition::Head => self.read_header(),
            RequestPosition::ChunkLength => {
                let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
                self.at = match std::str::from_utf8(digits).ok().and_then(|text| u64::from_str_radix(text, 16).ok()) {
                    None => RequestPosition::Lost,
                    Some(0) => RequestPosition::Trailer,
                    Some(length) => RequestPosition::Chunk(length),
                };
            }
            RequestPosition::ChunkEnd => self.at = RequestPosition::ChunkLength,
            RequestPosition::Trailer if line.is_empty() => self.at = RequestPosition::Head,
            RequestPosition::Trailer | RequestPosition::Lost | RequestPosition::Body(_) | RequestPosition::Chunk(_) => {
            }
        }
        false
    }

    /// Records a header that gives a length.
    fn read_header(&mut self) {
        let Some(colon) = memchr::memchr(b':', &self.line) else { return };
        let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_encoding = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.has_length = true;
            self.length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: &str = "POST /ingest HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabc\n\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\ntransfer-encoding:chunked\r\n\r\n5;x=y\r\n\r\n\r\n5\r\nA\r\nabcdefghij\r\n0\r\nDate: x\r\n\r\n";
    const GET: &str = "GET /?a:b HTTP/1.1\r\nHost: a:1\r\n\r\n";

    /// True if two lengths are found. Checks that the result does not depend on how the bytes are cut.
    fn found(text: &str) -> bool {
        let all = RequestTracker::default().read(text.as_bytes());
        let mut heads = RequestTracker::default();
        let by_bytes = text.as_bytes().chunks(1).fold(false, |found, byte| found | heads.read(byte));
        assert_eq!(all, by_bytes, "{text}");
        all
    }

    #[test]
    fn requests_with_one_length_or_none_are_accepted() {
        for text in [GET, LENGTH, CHUNKED, &[GET, LENGTH, CHUNKED, GET, CHUNKED, LENGTH, GET].concat()] {
            assert!(!found(text), "{text}");
        }
        // Headers in a body do not count.
        assert!(!found(
            "POST / HTTP/1.1\r\nContent-Length: 56\r\n\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n    "
        ));
        assert!(!found(&format!("POST / HTTP/1.1\r\nX: {}\r\n\r\n", "Content-Length: 1".repeat(100))));
    }

    #[test]
    fn two_lengths_are_found_in_any_order_and_place() {
        let first = "POST / HTTP/1.1\r\ncontent-length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
        let last = "POST / HTTP/1.1\nTRANSFER-ENCODING: chunked\nX: y\nContent-Length:5\n\n";
        let long =
            format!("POST / HTTP/1.1\r\nContent-Length:{}5\r\nTransfer-Encoding: chunked\r\n\r\n", " ".repeat(300));
        for text in [first, last, &long] {
            assert!(found(text), "{text}");
            for before in [GET, LENGTH, CHUNKED] {
                assert!(found(&[before, text].concat()), "{before}{text}");
            }
        }
    }

    #[test]
    fn an_invalid_request_is_not_followed() {
        for text in
            ["POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: x\r\n\r\nzz\r\n"]
        {
            let mut heads = RequestTracker::default();
            heads.read(text.as_bytes());
            assert_eq!(RequestPosition::Lost, heads.at);
        }
    }
}
