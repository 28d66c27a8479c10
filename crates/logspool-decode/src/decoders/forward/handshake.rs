//! The handshake of Forward v1, which authenticates a client by a shared key, and by user name and password.
//!
//! The server begins (HELO), the client proves that it knows the key (PING), and the server proves the same (PONG). The
//! caller supplies new random bytes for each connection, so a proof is valid for one connection only.

use std::fmt;

use logspool_record::msgpack;
use sha2::{Digest, Sha512};
use subtle::{Choice, ConstantTimeEq};

use super::msgpack::{Token, TokenReader};
use super::problem::{ForwardError, ForwardProblem};
use crate::decoders::convert;

/// Random bytes of the server, which the client's proof includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Random bytes for the proof of the shared key.
    pub nonce: Vec<u8>,
    /// Random bytes for the proof of the password. Empty if the server does not ask for a password.
    pub auth: Vec<u8>,
}

/// The server's side of the handshake.
#[derive(Clone, Copy)]
pub struct HandshakeServer<'a> {
    /// Host name sent to clients.
    pub hostname: &'a str,
    /// The shared key.
    pub shared_key: &'a str,
    /// Users and passwords. If empty, the key is sufficient.
    pub users: &'a [(String, String)],
}

/// The server's decision about a PING.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandshakeAnswer {
    /// The client may send records. The bytes are the PONG for it.
    Welcome(Vec<u8>),
    /// The client is refused. Close the connection after sending this PONG.
    Refused(Vec<u8>),
}

impl HandshakeServer<'_> {
    /// The challenge for a new connection. `random` has 16 bytes for the key and 16 for the password.
    pub fn challenge(&self, random: [u8; 32]) -> Challenge {
        let (nonce, auth) = random.split_at(16);
        let auth = if self.users.is_empty() { &[] } else { auth };
        Challenge { nonce: nonce.to_vec(), auth: auth.to_vec() }
    }

    /// Checks a PING and returns the answer.
    ///
    /// # Errors
    ///
    /// The bytes are not a PING.
    pub fn answer(&self, challenge: &Challenge, ping: &[u8]) -> Result<HandshakeAnswer, ForwardError> {
        let ping = Ping::read(ping)?;
        let digest = key_digest(ping.salt, ping.hostname, &challenge.nonce, self.shared_key);
        if !bool::from(digest.as_bytes().ct_eq(ping.digest)) {
            return Ok(HandshakeAnswer::Refused(self.pong(Err("the shared key is wrong"), "")));
        }
        if !self.users.is_empty() && !bool::from(self.knows(&challenge.auth, &ping)) {
            return Ok(HandshakeAnswer::Refused(self.pong(Err("user name or password is wrong"), "")));
        }
        let proof = key_digest(ping.salt, self.hostname.as_bytes(), &challenge.nonce, self.shared_key);
        Ok(HandshakeAnswer::Welcome(self.pong(Ok(()), &proof)))
    }

    /// True if the PING has the name and password of a known user. All users are compared, so that the time taken does
    /// not reveal which one matched.
    fn knows(&self, auth: &[u8], ping: &Ping<'_>) -> Choice {
        self.users.iter().fold(Choice::from(0), |found, (name, password)| {
            let digest = password_digest(auth, name, password);
            found | (name.as_bytes().ct_eq(ping.username) & digest.as_bytes().ct_eq(ping.password))
        })
    }

    fn pong(&self, result: Result<(), &str>, proof: &str) -> Vec<u8> {
        let mut to = Vec::new();
        msgpack::push_array(&mut to, 5);
        msgpack::push_text(&mut to, b"PONG");
        msgpack::push_bool(&mut to, result.is_ok());
        msgpack::push_text(&mut to, result.err().unwrap_or_default().as_bytes());
        msgpack::push_text(&mut to, if result.is_ok() { self.hostname } else { "" }.as_bytes());
        msgpack::push_text(&mut to, proof.as_bytes());
        to
    }
}

impl Challenge {
    /// Encodes the challenge as HELO.
    pub fn helo(&self) -> Vec<u8> {
        let mut to = Vec::new();
        msgpack::push_array(&mut to, 2);
        msgpack::push_text(&mut to, b"HELO");
        msgpack::push_map(&mut to, 3);
        msgpack::push_text(&mut to, b"nonce");
        msgpack::push_bytes(&mut to, &self.nonce);
        msgpack::push_text(&mut to, b"auth");
        // Fluentd sends an empty text if it does not ask for a password.
        if self.auth.is_empty() {
            msgpack::push_text(&mut to, b"")
        } else {
            msgpack::push_bytes(&mut to, &self.auth)
        }
        msgpack::push_text(&mut to, b"keepalive");
        msgpack::push_bool(&mut to, true);
        to
    }

    /// Parses a HELO.
    ///
    /// # Errors
    ///
    /// The bytes are not a HELO.
    pub fn read(helo: &[u8]) -> Result<Self, ForwardError> {
        let mut reader = TokenReader::new(helo);
        let result = Self::parts(&mut reader);
        result.map_err(|problem| problem.at(reader.at()))
    }

    fn parts(reader: &mut TokenReader<'_>) -> Result<Self, ForwardProblem> {
        begin(reader, "HELO", 2)?;
        let Token::Map(count) = reader.token()? else { return Err(ForwardProblem::Unexpected("a map")) };
        let (mut nonce, mut auth) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let name = reader.token()?;
            reader.skip(name.values())?;
            match (name, reader.token()?) {
                (Token::Text(b"nonce"), Token::Text(value)) => nonce = value.to_vec(),
                (Token::Text(b"auth"), Token::Text(value)) => auth = value.to_vec(),
                (_, other) => reader.skip(other.values())?,
            }
        }
        Ok(Self { nonce, auth })
    }
}

/// The content of a PING.
struct Ping<'a> {
    hostname: &'a [u8],
    salt: &'a [u8],
    digest: &'a [u8],
    username: &'a [u8],
    password: &'a [u8],
}

impl<'a> Ping<'a> {
    fn read(ping: &'a [u8]) -> Result<Self, ForwardError> {
        let mut reader = TokenReader::new(ping);
        let result = Self::parts(&mut reader);
        result.map_err(|problem| problem.at(reader.at()))
    }

    fn parts(reader: &mut TokenReader<'a>) -> Result<Self, ForwardProblem> {
        begin(reader, "PING", 6)?;
        Ok(Self {
            hostname: text_of(reader)?,
            salt: text_of(reader)?,
            digest: text_of(reader)?,
            username: text_of(reader)?,
            password: text_of(reader)?,
        })
    }
}

/// The client's side of the handshake.
#[derive(Clone, Copy)]
pub struct HandshakeClient<'a> {
    /// Host name sent to the server.
    pub hostname: &'a str,
    /// The shared key.
    pub shared_key: &'a str,
    /// Name and password; empty if the server does not ask for them.
    pub user: (&'a str, &'a str),
}

/// Reason why the client must not send records.
#[derive(Debug)]
pub enum PongError {
    /// The server's answer is not a PONG.
    Forward(ForwardError),
    /// The server refuses the client, for this reason.
    Refused(String),
    /// The server does not know the shared key.
    UnknownKey,
}

impl fmt::Display for PongError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward(error) => write!(to, "the answer to the handshake cannot be read: {error}"),
            Self::Refused(reason) => write!(to, "the server refuses the connection: {reason}"),
            Self::UnknownKey => to.write_str("the server has another shared key"),
        }
    }
}

impl std::error::Error for PongError {}

impl HandshakeClient<'_> {
    /// The PING for a HELO. `salt` has random bytes.
    pub fn ping(&self, challenge: &Challenge, salt: &[u8]) -> Vec<u8> {
        let (name, password) = if challenge.auth.is_empty() { ("", "") } else { self.user };
        let mut to = Vec::new();
        msgpack::push_array(&mut to, 6);
        msgpack::push_text(&mut to, b"PING");
        msgpack::push_text(&mut to, self.hostname.as_bytes());
        msgpack::push_bytes(&mut to, salt);
        let digest = key_digest(salt, self.hostname.as_bytes(), &challenge.nonce, self.shared_key);
        msgpack::push_text(&mut to, digest.as_bytes());
        msgpack::push_text(&mut to, name.as_bytes());
        let digest = if name.is_empty() { String::new() } else { password_digest(&challenge.auth, name, password) };
        msgpack::push_text(&mut to, digest.as_bytes());
        to
    }

    /// Checks the PONG for this PING.
    ///
    /// # Errors
    ///
    /// The server refuses the client, or does not know the key.
    pub fn check(&self, challenge: &Challenge, salt: &[u8], pong: &[u8]) -> Result<(), PongError> {
        let mut reader = TokenReader::new(pong);
        let pong = Pong::parts(&mut reader).map_err(|problem| PongError::Forward(problem.at(reader.at())))?;
        if !pong.is_welcome {
            return Err(PongError::Refused(convert::lossy(pong.reason).into_owned()));
        }
        let expected = key_digest(salt, pong.hostname, &challenge.nonce, self.shared_key);
        if bool::from(expected.as_bytes().ct_eq(pong.digest)) { Ok(()) } else { Err(PongError::UnknownKey) }
    }
}

/// The content of a PONG.
struct Pong<'a> {
    is_welcome: bool,
    reason: &'a [u8],
    hostname: &'a [u8],
    digest: &'a [u8],
}

impl<'a> Pong<'a> {
    fn parts(reader: &mut TokenReader<'a>) -> Result<Self, ForwardProblem> {
        begin(reader, "PONG", 5)?;
        let Token::Bool(is_welcome) = reader.token()? else { return Err(ForwardProblem::Unexpected("true or false")) };
        Ok(Self { is_welcome, reason: text_of(reader)?, hostname: text_of(reader)?, digest: text_of(reader)? })
    }
}

/// Reads the start of a message: a list with at least `values` values, the first of which is `word`.
fn begin(reader: &mut TokenReader<'_>, word: &'static str, values: u32) -> Result<(), ForwardProblem> {
    match (reader.token()?, reader.token()?) {
        (Token::List(count), Token::Text(text)) if count >= values && text == word.as_bytes() => Ok(()),
        _ => Err(ForwardProblem::Unexpected(word)),
    }
}

fn text_of<'a>(reader: &mut TokenReader<'a>) -> Result<&'a [u8], ForwardProblem> {
    match reader.token()? {
        Token::Text(text) => Ok(text),
        _ => Err(ForwardProblem::Unexpected("a text")),
    }
}

/// As Forward v1 specifies: SHA-512 of salt, hostname, nonce and shared key, in hex.
fn key_digest(salt: &[u8], hostname: &[u8], nonce: &[u8], shared_key: &str) -> String {
    digest([salt, hostname, nonce, shared_key.as_bytes()])
}

/// As Forward v1 specifies: SHA-512 of the server's salt, name and password, in hex.
fn password_digest(auth: &[u8], name: &str, password: &str) -> String {
    digest([auth, name.as_bytes(), password.as_bytes(), b""])
}

fn digest(parts: [&[u8]; 4]) -> String {
    let mut hash = Sha512::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
