#![no_main]
//! Forward messages: where they end, and what they hold.

mod check;

use libfuzzer_sys::fuzz_target;
use logspool_server::decoders::forward::{self, ChunkId, Frame, Limits, Scanner};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { frame: 1 << 20, expanded: 1 << 20, repeated: 1 << 20, items: 1000 };
    let whole = Scanner::default().frame(bytes, &limits);
    let mut scanner = Scanner::default();
    let in_pieces = (0..bytes.len()).step_by(7).chain([bytes.len()]).map(|end| scanner.frame(&bytes[..end], &limits));
    let in_pieces = in_pieces.into_iter().find(|found| !matches!(found, Ok(Frame::Incomplete)));
    match (&whole, &in_pieces) {
        (Ok(Frame::Complete { length }), Some(Ok(found))) => assert_eq!(&Frame::Complete { length: *length }, found),
        (Ok(Frame::Incomplete), None) | (Err(_), Some(Err(_))) => {}
        _ => panic!("{whole:?} at once, {in_pieces:?} in pieces"),
    }

    let mut inflated = Vec::new();
    let Ok(message) = forward::read(bytes, &mut inflated, &limits) else { return };
    for record in message.records().flatten() {
        check::record(&record);
    }
    // What is read to its end ends where the scanner says.
    assert!(matches!(whole, Ok(Frame::Complete { length }) if length == bytes.len()));
    assert_eq!(message.chunk.is_some(), message.ack().is_some());
    if let Some(id) = message.chunk.as_deref()
        && let Some(parsed) = ChunkId::parse(id)
    {
        assert_eq!(id, parsed.to_string());
    }
});
