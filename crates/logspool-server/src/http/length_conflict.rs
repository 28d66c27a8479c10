//! Detects requests that give their length twice: `Content-Length` and `Transfer-Encoding`.
//!
//! A proxy in front of the service may use the other header than the service does. Then it takes a part of the body for
//! the next request (request smuggling). hyper follows the standard: it uses `Transfer-Encoding` and removes
//! `Content-Length`. So code that runs after hyper cannot see that there were two lengths. A server may refuse such a
//! request (RFC 9112, 6.3). To find them, [`InspectedStream`] inspects the bytes before hyper gets them, and keeps
//! track of heads and bodies.
//!
//! This module makes no other decision. If it cannot parse a request, hyper decides what happens to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncRead, ReadBuf};

use super::error::HttpError;

/// Number of bytes of a line that are kept. This is enough for the names and values of the two headers.
const LINE_BYTES: usize = 256;

/// True once a request with two lengths was read from a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct LengthConflict(Arc<AtomicBool>);

impl LengthConflict {
    /// True if a request with two lengths was found.
    pub fn found(&self) -> bool {
        // Relaxed: only the task of the connection sets and reads the flag.
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the answer to a request with two lengths. The connection is closed after it.
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

/// Position of the tracker in a request.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RequestPosition {
    /// In a line of the request head.
    #[default]
    Head,
    /// In a body with `Content-Length`. The value is the number of bytes left.
    Body(u64),
    /// In the line that gives the length of a chunk.
    ChunkLength,
    /// In a chunk. The value is the number of bytes left.
    Chunk(u64),
    /// In the line end after a chunk.
    ChunkEnd,
    /// In a trailer line after the last chunk.
    Trailer,
    /// Unknown, because the bytes are not a valid request. No further bytes are inspected.
    Lost,
}

/// Keeps track of the position in requests, and parses their heads.
#[derive(Debug, Default)]
struct RequestTracker {
    at: RequestPosition,
    /// The current line, cut at [`LINE_BYTES`].
    line: Vec<u8>,
    has_length: bool,
    /// The value of `Content-Length`; `None` if the header is missing or its value cannot be parsed.
    length: Option<u64>,
    has_encoding: bool,
}

impl RequestTracker {
    /// Inspects the next bytes. Returns true if a request head with two lengths ends in these bytes.
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

    /// Notes the current line if it is a header that gives a length.
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

    /// Returns true if two lengths are found. Also checks that the result does not depend on how the bytes are split
    /// into pieces.
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
        // Headers in a body are not counted as headers of the request.
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
