//! All protocols. Finds a protocol by its name, or by the first bytes of a connection or datagram.

use crate::connection::framing::FrameError;
use crate::connection::protocol::{FirstBytes, Protocol, contains};
use crate::protocols::TABLE;
use logspool::nearest::nearest;

/// All protocols: those of the table in `protocols.rs`, and HTTP.
pub const ALL: &[&Protocol] = &{
    let mut all = [&crate::http::protocol::HTTP; TABLE.len() + 1];
    let mut at = 0;
    while at < TABLE.len() {
        all[at] = TABLE[at];
        at += 1;
    }
    all
};

/// Maximum number of white space bytes before a protocol.
const MAX_BLANK_BYTES: usize = 1024;

/// The first byte of a TLS connection.
const TLS: u8 = 0x16;

/// Says whether more bytes may arrive on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// More bytes can arrive.
    Open,
    /// No more bytes will arrive, or none arrived within the time limit.
    Closed,
}

/// The protocol of the first bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectedProtocol {
    /// The protocol.
    pub protocol: &'static Protocol,
    /// Number of bytes before its first byte: a byte order mark and white space.
    pub blank: usize,
}

/// Returns the protocol that begins with the first bytes of a connection. At least one byte is required. `None`: more
/// bytes are needed to decide between two protocols.
///
/// # Errors
///
/// No protocol begins with these bytes.
pub fn detect(bytes: &[u8], rest: InputState) -> Result<Option<DetectedProtocol>, FrameError> {
    let blank = match crate::protocols::text::blank_bytes(bytes) {
        Some(blank) => blank,
        None if rest == InputState::Open && bytes.len() < MAX_BLANK_BYTES => return Ok(None),
        None => 0,
    };
    let bytes = &bytes[blank..];
    let detected = |protocol| Ok(Some(DetectedProtocol { protocol, blank }));
    let first = bytes[0];
    match crate::protocols::text::is_text(bytes) {
        Some(true) => return detected(&crate::protocols::text::TEXT),
        None if rest == InputState::Open => return Ok(None),
        _ => {}
    }
    let mut found = None;
    for protocol in ALL.iter().filter(|protocol| protocol.may_begin_with(first)) {
        match protocol.tie_breaker.as_ref().map(|tie| (tie.decide)(bytes)) {
            Some(Some(true)) => return detected(protocol),
            Some(None) if rest == InputState::Open => return Ok(None),
            Some(_) => {}
            None => found = Some(*protocol),
        }
    }
    match found {
        Some(protocol) => detected(protocol),
        // White space and nothing else.
        None if first.is_ascii_whitespace() => detected(&crate::protocols::text::TEXT),
        None if first == TLS => Err(FrameError::Tls),
        None => Err(FrameError::Unknown(first)),
    }
}

/// The protocol of the next frame of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameBegin {
    /// The frame may be of the same protocol as the one before it.
    Same,
    /// It is of this other protocol.
    Other(&'static Protocol),
    /// More bytes are needed.
    Undecided,
}

/// Returns the protocol of a frame that begins with these bytes, if they cannot be a frame of the protocol `now`. Some
/// senders share one connection between outputs of several formats.
pub fn begins_frame(bytes: &[u8], now: &Protocol) -> FrameBegin {
    if bytes.first().is_none_or(|byte| now.may_begin_with(*byte)) {
        return FrameBegin::Same;
    }
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match bytes {
        [b'{', ..] => FrameBegin::Other(&crate::protocols::json::JSON),
        // Messages between counted ones are read by the framer for counted ones.
        [b'<', ..] if *now == crate::protocols::octet_counted::OCTET_COUNTED => FrameBegin::Same,
        [b'<', digit, ..] if digit.is_ascii_digit() => FrameBegin::Other(&crate::protocols::syslog::SYSLOG),
        // A NUL also ends frames. A pickle begins with its length and an object, or the version of the format.
        [0, 0..=0x0F, _, _, b'}' | b'(' | 0x80, ..] => FrameBegin::Other(&crate::protocols::pickle::PICKLE),
        [0] => FrameBegin::Undecided,
        [0, 0..=0x09 | 0x0B..=0x0F, rest @ ..] if rest.len() < 3 => FrameBegin::Undecided,
        // A list of MessagePack, and a tag of letters. Other texts than UTF-8 have quotes with these numbers.
        [0x92..=0x94] => FrameBegin::Undecided,
        [0x92..=0x94, 0xA1..=0xBF | 0xD9..=0xDB, rest @ ..] => match rest.iter().find(|byte| byte.is_ascii_graphic()) {
            Some(_) => FrameBegin::Other(&crate::protocols::forward::FORWARD),
            None if rest.len() < 5 => FrameBegin::Undecided,
            None => FrameBegin::Same,
        },
        _ if (1..=9).contains(&digits) && bytes[digits..].starts_with(b" <") => {
            FrameBegin::Other(&crate::protocols::octet_counted::OCTET_COUNTED)
        }
        _ => FrameBegin::Same,
    }
}

/// Returns the protocol that begins with the first byte of a datagram. `None`: no protocol does, or the datagram is
/// empty.
pub fn detect_datagram(datagram: &[u8]) -> Option<&'static Protocol> {
    let first = *datagram.first()?;
    let takes = |protocol: &Protocol| protocol.datagrams.as_ref().is_some_and(|how| contains(how.begins, first));
    ALL.iter().find(|protocol| takes(protocol)).copied()
}

/// Returns the protocol with this name.
///
/// # Errors
///
/// The name is unknown. The text has all names, and the most similar name if there is one.
pub fn by_name(name: &str) -> Result<&'static Protocol, String> {
    let found = ALL.iter().find(|protocol| protocol.name == name);
    found.copied().ok_or_else(|| {
        let names = ALL.iter().map(|protocol| protocol.name);
        let near = nearest(name, names.clone()).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        format!("unknown protocol {name:?}{near}: {}", names.collect::<Vec<_>>().join(", "))
    })
}

/// A compile-time check: if two protocols begin with the same byte, one of them must declare a tie-breaker for the
/// other.
const _: () = {
    let mut one = 0;
    while one < ALL.len() {
        let mut other = 0;
        while other < one {
            let (first, second) = (ALL[one], ALL[other]);
            assert!(!same(first.name, second.name), "two protocols have one name");
            assert!(
                !overlap(first.first_bytes, second.first_bytes)
                    || breaks_tie(first, second) != breaks_tie(second, first),
                "two protocols begin with the same byte: exactly one of them needs a tie-breaker with the other"
            );
            if let (Some(first), Some(second)) = (&first.datagrams, &second.datagrams) {
                assert!(!overlap(first.begins, second.begins), "datagrams of two protocols begin with the same byte");
            }
            other += 1;
        }
        one += 1;
    }
};

const fn breaks_tie(protocol: &Protocol, other: &Protocol) -> bool {
    match &protocol.tie_breaker {
        Some(tie) => same(tie.other, other.name),
        None => false,
    }
}

const fn overlap(one: FirstBytes, other: FirstBytes) -> bool {
    let mut at = 0;
    while at < one.len() {
        let mut beside = 0;
        while beside < other.len() {
            if one[at].0 <= other[beside].1 && other[beside].0 <= one[at].1 {
                return true;
            }
            beside += 1;
        }
        at += 1;
    }
    false
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_decides_the_protocol() {
        let name = |bytes: &[u8]| detect(bytes, InputState::Open).map(|found| found.unwrap().protocol.name);

        assert_eq!(Ok("pickle"), name(b"\0\0\x02\x01}q"));
        assert_eq!(Ok("json"), name(b"{\"a\":1}"));
        assert_eq!(Ok("syslog"), name(b"<14>text"));
        assert_eq!(Ok("syslog-octets"), name(b"12 <14>text"));
        assert_eq!(Ok("forward"), name(b"\x93\xA3tag"));
        assert_eq!(Ok("http"), name(b"POST / HTTP/1.1"));
        assert_eq!(Err(FrameError::Tls), name(b"\x16\x03\x01"));
        assert_eq!(Ok("text"), name(b"z"));
        assert_eq!(Ok("text"), name(b"Hello world"));
        assert_eq!(Ok("text"), name(b"2026-11-22 10:00:00 paid"));
        assert_eq!(Err(FrameError::Unknown(0x7F)), name(b"\x7F"));
        let blank =
            |bytes: &[u8]| detect(bytes, InputState::Open).unwrap().map(|found| (found.protocol.name, found.blank));
        assert_eq!(Some(("json", 5)), blank(b"\xEF\xBB\xBF\r\n{"));
        assert_eq!(Some(("syslog", 1)), blank(b" <14>text"));
        assert_eq!(None, blank(b"\n"));
    }

    #[test]
    fn a_frame_of_another_protocol_is_recognised_only_where_the_current_one_cannot_begin() {
        let json = &crate::protocols::json::JSON;
        let name = |bytes: &[u8], now| match begins_frame(bytes, now) {
            FrameBegin::Other(found) => Some(found.name),
            FrameBegin::Same => None,
            FrameBegin::Undecided => Some("undecided"),
        };

        assert_eq!(Some("syslog"), name(b"<14>text", json));
        assert_eq!(Some("syslog-octets"), name(b"12 <14>text", json));
        assert_eq!(Some("json"), name(b"{", &crate::protocols::syslog::SYSLOG));
        assert_eq!(Some("pickle"), name(b"\0\0\x01\x05}q\0(", json));
        assert_eq!(Some("pickle"), name(b"\0\x0A\0\0\x80\x04", json));
        assert_eq!(Some("forward"), name(b"\x93\xA3tag", json));
        assert_eq!(Some("forward"), name(b"\x92\xDB\0\0\0\x03tag", json));
        for short in [&b"\0"[..], b"\0\0\x01", b"\x93", b"\x93\xDB\0\0"] {
            assert_eq!(Some("undecided"), name(short, json), "{short:?}");
        }
        for same in [&b"{"[..], b"", b"\0{\"a\"", b"\0\n", b"\x93Quoted\x94", b"12 monkeys", b"<html>", b"text", b"\n{"]
        {
            assert_eq!(None, name(same, json), "{same:?}");
        }
    }

    #[test]
    fn a_datagram_has_one_protocol_whatever_its_first_byte() {
        for byte in 0..=u8::MAX {
            let expected = match byte {
                0 => "pickle",
                b'{' | 0x1E | 0x1F | 0x78 => "json",
                _ => "syslog",
            };
            assert_eq!(expected, detect_datagram(&[byte]).unwrap().name, "{byte:#04x}");
        }
        assert_eq!(None, detect_datagram(b""));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        assert_eq!(Ok(&crate::protocols::pickle::PICKLE), by_name("pickle"));
        assert!(by_name("sylog").unwrap_err().contains("did you mean syslog?"));
        assert!(!by_name("smoke").unwrap_err().contains("did you mean"));
    }
}
