#![no_main]
//! The handshake of Forward: a client without a key is refused, and a server without a proof is not trusted.

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::forward::handshake::{HandshakeAnswer, Challenge, HandshakeClient, HandshakeServer};

fuzz_target!(|bytes: &[u8]| {
    let users = [("me".to_owned(), "secret".to_owned())];
    let server = HandshakeServer { hostname: "service", shared_key: "key", users: &users };
    let challenge = server.challenge([7; 32]);
    assert!(!matches!(server.answer(&challenge, bytes), Ok(HandshakeAnswer::Welcome(_))));
    let client = HandshakeClient { hostname: "client", shared_key: "key", user: ("me", "secret") };
    assert!(client.check(&challenge, &[9; 16], bytes).is_err());
    if let Ok(other) = Challenge::read(bytes) {
        assert_eq!(Some(other.clone()), Challenge::read(&other.helo()).ok());
        client.ping(&other, &[9; 16]);
    }
});
