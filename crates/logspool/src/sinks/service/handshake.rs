//! The client's side of the handshake of Forward v1, in which both sides prove that they know the shared key.
//!
//! The receiver begins (HELO, with a nonce). The client answers with a proof (PING), and the receiver sends its own
//! proof (PONG). A proof is a SHA-512 digest, so the key itself is never sent. The salt is random for each connection.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use logspool_record::msgpack::{Item, ReadError, Reader, push_array, push_text};
use logspool_sys::opening::read_text;
use sha2::{Digest, Sha512};

use crate::sinks::secret::Secret;

/// Maximum time for the handshake. Chosen: as long as for the handshakes of TLS and TCP together.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(8);

/// Longest name of this machine that is sent.
const MAX_HOSTNAME_BYTES: usize = 255;

/// A handshake with a receiver.
#[derive(Debug)]
pub struct KeyHandshake {
    key: Secret,
    salt: String,
    hostname: String,
    begun: Instant,
    step: HandshakeStep,
    /// Bytes of the PING that wait for room in the socket.
    pub to_send: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum HandshakeStep {
    AwaitsHelo,
    AwaitsPong { nonce: Vec<u8> },
    Done,
}

impl KeyHandshake {
    /// Begins to wait for the receiver's HELO. `salt` is random.
    pub fn begin(key: &Secret, salt: [u8; 16]) -> Self {
        let hostname = read_text("/proc/sys/kernel/hostname").unwrap_or_default();
        let hostname = hostname.trim();
        let is_usable = !hostname.is_empty() && hostname.len() <= MAX_HOSTNAME_BYTES;
        Self {
            key: key.clone(),
            salt: hex(&salt),
            hostname: if is_usable { hostname } else { "localhost" }.to_owned(),
            begun: Instant::now(),
            step: HandshakeStep::AwaitsHelo,
            to_send: Vec::new(),
        }
    }

    /// Whether both sides have proved that they know the key.
    pub fn is_done(&self) -> bool {
        self.step == HandshakeStep::Done
    }

    /// Reads the receiver's next message from the start of `bytes`. Returns its length, or `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// The receiver refuses the key, does not know it itself, or speaks another protocol.
    pub fn read(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let mut reader = Reader::new(bytes);
        let read = match &self.step {
            HandshakeStep::AwaitsHelo => read_helo(&mut reader).map(|helo| self.answer(helo)),
            HandshakeStep::AwaitsPong { nonce } => read_pong(&mut reader).map(|pong| self.check(&pong, nonce)),
            HandshakeStep::Done => return Ok(Some(0)),
        };
        match read {
            Ok(next) => self.step = next?,
            Err(ReadError::Incomplete) => return Ok(None),
            Err(ReadError::Invalid) => {
                return Err(invalid(
                    "what answers there begins no handshake with a shared key (fix: no shared_key here, \
                     or shared_key in the receiver's configuration)"
                        .to_owned(),
                ));
            }
        }
        Ok(Some(bytes.len() - reader.rest().len()))
    }

    /// The error if the receiver takes too long.
    ///
    /// # Errors
    ///
    /// The time is over.
    pub fn check_time(&self) -> io::Result<()> {
        if self.is_done() || self.begun.elapsed() <= HANDSHAKE_LIMIT {
            return Ok(());
        }
        let why = format!(
            "no handshake with the shared key within {} s (fix: does the receiver have a shared key? without one, no \
             shared_key here)",
            HANDSHAKE_LIMIT.as_secs()
        );
        Err(io::Error::new(ErrorKind::TimedOut, why))
    }

    fn answer(&mut self, helo: HeloParts) -> io::Result<HandshakeStep> {
        if helo.wants_user {
            return Err(invalid(
                "the receiver wants a user name and a password, which this sink does not send (fix: a receiver with \
                 the shared key alone)"
                    .to_owned(),
            ));
        }
        let proof = proof(&self.salt, self.hostname.as_bytes(), &helo.nonce, &self.key);
        push_array(&mut self.to_send, 6);
        for part in ["PING", &self.hostname, &self.salt, &proof, "", ""] {
            push_text(&mut self.to_send, part.as_bytes());
        }
        Ok(HandshakeStep::AwaitsPong { nonce: helo.nonce })
    }

    fn check(&self, pong: &PongParts, nonce: &[u8]) -> io::Result<HandshakeStep> {
        if !pong.accepts {
            let reason = String::from_utf8_lossy(&pong.reason).replace(self.key.text(), "");
            let why = format!("the receiver refuses the shared key: {:?} (fix: the same shared_key as there)", reason);
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        if proof(&self.salt, &pong.hostname, nonce, &self.key).as_bytes() != pong.proof {
            let why = "the receiver does not know the shared key (fix: the same shared_key as there)";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        Ok(HandshakeStep::Done)
    }
}

struct HeloParts {
    nonce: Vec<u8>,
    wants_user: bool,
}

struct PongParts {
    accepts: bool,
    reason: Vec<u8>,
    hostname: Vec<u8>,
    proof: Vec<u8>,
}

/// Whether `bytes` begin with a HELO: the receiver wants a shared key.
pub fn is_helo(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    matches!(reader.item(), Ok(Item::Array(2)))
        && matches!(reader.item(), Ok(Item::Text(b"HELO") | Item::Bytes(b"HELO")))
}

fn read_helo(reader: &mut Reader<'_>) -> Result<HeloParts, ReadError> {
    expect_head(reader, 2, b"HELO")?;
    let Item::Map(count) = reader.item()? else { return Err(ReadError::Invalid) };
    let (mut nonce, mut wants_user) = (None, false);
    for _ in 0..count {
        match reader.item()? {
            Item::Text(b"nonce") | Item::Bytes(b"nonce") => nonce = Some(text(reader)?),
            Item::Text(b"auth") | Item::Bytes(b"auth") => wants_user = !text(reader)?.is_empty(),
            Item::Text(_) | Item::Bytes(_) => reader.skip()?,
            _ => return Err(ReadError::Invalid),
        }
    }
    Ok(HeloParts { nonce: nonce.ok_or(ReadError::Invalid)?, wants_user })
}

fn read_pong(reader: &mut Reader<'_>) -> Result<PongParts, ReadError> {
    expect_head(reader, 5, b"PONG")?;
    let Item::Bool(accepts) = reader.item()? else { return Err(ReadError::Invalid) };
    Ok(PongParts { accepts, reason: text(reader)?, hostname: text(reader)?, proof: text(reader)? })
}

fn expect_head(reader: &mut Reader<'_>, parts: usize, name: &[u8]) -> Result<(), ReadError> {
    if reader.item()? != Item::Array(parts) || text(reader)? != name {
        return Err(ReadError::Invalid);
    }
    Ok(())
}

/// A text or bytes. Receivers differ in which of them they send.
fn text(reader: &mut Reader<'_>) -> Result<Vec<u8>, ReadError> {
    match reader.item()? {
        Item::Text(text) | Item::Bytes(text) => Ok(text.to_vec()),
        Item::Nil => Ok(Vec::new()),
        _ => Err(ReadError::Invalid),
    }
}

fn proof(salt: &str, hostname: &[u8], nonce: &[u8], key: &Secret) -> String {
    let digest = Sha512::new().chain_update(salt).chain_update(hostname).chain_update(nonce);
    hex(&digest.chain_update(key.text()).finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn invalid(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use logspool_record::definition::OptionValue;
    use logspool_record::msgpack::{push_bool, push_bytes, push_map};

    use super::*;
    use crate::option::OptionField;

    fn key(text: &str) -> Secret {
        Secret::from_value(&OptionValue::Text(text.to_owned())).unwrap()
    }

    fn helo(auth: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_array(&mut bytes, 2);
        push_text(&mut bytes, b"HELO");
        push_map(&mut bytes, 3);
        push_text(&mut bytes, b"nonce");
        push_bytes(&mut bytes, b"\x00\xffnonce");
        push_text(&mut bytes, b"auth");
        push_bytes(&mut bytes, auth);
        push_text(&mut bytes, b"keepalive");
        push_bool(&mut bytes, true);
        bytes
    }

    fn pong(accepts: bool, reason: &str, proof: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_array(&mut bytes, 5);
        push_text(&mut bytes, b"PONG");
        push_bool(&mut bytes, accepts);
        for part in [reason, "receiver", proof] {
            push_text(&mut bytes, part.as_bytes());
        }
        bytes
    }

    fn greeted() -> KeyHandshake {
        let mut handshake = KeyHandshake::begin(&key("hunter2"), [7; 16]);
        let bytes = helo(b"");
        for cut in 0..bytes.len() {
            assert_eq!(None, handshake.read(&bytes[..cut]).unwrap(), "{cut}");
        }
        assert_eq!(Some(bytes.len()), handshake.read(&bytes).unwrap());
        handshake
    }

    #[test]
    fn both_sides_prove_the_key_with_the_specified_digests() {
        // sha512sum of the text "abc".
        let expected = "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                        2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        assert_eq!(expected, proof("a", b"", b"b", &key("c")));

        let mut handshake = greeted();
        let mut reader = Reader::new(&handshake.to_send);
        assert_eq!(Ok(Item::Array(6)), reader.item());
        let parts: Vec<_> = (0..6).map(|_| String::from_utf8(text(&mut reader).unwrap()).unwrap()).collect();
        assert!(reader.rest().is_empty());
        let salt = "07".repeat(16);
        let sent = proof(&salt, parts[1].as_bytes(), b"\x00\xffnonce", &key("hunter2"));
        assert_eq!(["PING", &parts[1], &salt, &sent, "", ""], *parts);

        let answer = pong(true, "", &proof(&salt, b"receiver", b"\x00\xffnonce", &key("hunter2")));
        assert_eq!((Some(answer.len()), true), (handshake.read(&answer).unwrap(), handshake.is_done()));
    }

    #[test]
    fn errors_of_the_handshake_do_not_show_the_key() {
        let salt = "07".repeat(16);
        let wrong = proof(&salt, b"receiver", b"\x00\xffnonce", &key("other"));
        for answer in [pong(false, "no hunter2", ""), pong(true, "", &wrong), pong(true, "", "")] {
            let mut handshake = greeted();
            let error = handshake.read(&answer).unwrap_err().to_string();

            assert!(error.contains("fix: the same shared_key") && !error.contains("hunter2"), "{error}");
            assert!(!handshake.is_done() && !format!("{handshake:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_receiver_that_starts_differently_or_late_is_recognised() {
        let mut handshake = KeyHandshake::begin(&key("hunter2"), [7; 16]);
        assert!(handshake.read(b"\x81\xa3ack\xa1c").unwrap_err().to_string().contains("fix: no shared_key"));
        assert!(handshake.read(&helo(b"salt")).unwrap_err().to_string().contains("password"));
        assert!(handshake.check_time().is_ok());
        handshake.begun = Instant::now().checked_sub(HANDSHAKE_LIMIT + Duration::from_millis(1)).unwrap();
        assert_eq!(ErrorKind::TimedOut, handshake.check_time().unwrap_err().kind());
        assert!(is_helo(&helo(b"")) && !is_helo(b"\x81\xa3ack\xa1c"));
    }
}
